package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/override"
)

// A Past is which changes of a history are asked for. What is empty is not asked about.
type Past struct {
	Since, Until   time.Duration // before now
	Who, Rule, Key string        // whole or the start of one and a *; of a key a part
	Most           int
}

// History returns the changes that operators have made, the last one first, and how many there are.
func (c *Core) History(ctx context.Context, p Past) (found []override.Record, all int, err error) {
	editor, err := c.Editor()
	if err != nil {
		return nil, 0, err
	}
	now, err := c.Client.Time(ctx).Result()
	if err != nil {
		return nil, 0, err
	}
	if found, err = editor.History(ctx, 0); err != nil {
		return nil, 0, err
	}
	texts := Spellings(p.Key)
	found = slices.DeleteFunc(found, func(r override.Record) bool {
		age := now.Sub(r.At)
		return p.Since > 0 && age > p.Since || age < p.Until || p.Who != "" && !alike(r.Who, p.Who) || (p.Rule != "" || p.Key != "") && !p.concerns(&r, texts)
	})
	return found[:min(len(found), p.Most)], len(found), nil
}

// concerns reports whether a change is of the rule and the key that are asked for.
func (p Past) concerns(r *override.Record, texts []string) bool {
	targets := r.Targets()
	targets[r.Target] = true
	for t := range targets {
		has, _ := holds(t.Pattern, texts)
		if (p.Rule == "" || alike(t.Rule, p.Rule)) && (p.Key == "" || t.Keys && has) {
			return true
		}
	}
	return false
}

// alike reports whether a text is what was asked for, or starts as that does before a *.
func alike(text, asked string) bool {
	start, is := strings.CutSuffix(asked, "*")
	return text == asked || is && strings.HasPrefix(text, start)
}

// Undo takes a change back, or the last one for 0. Before it takes back that of somebody else it asks, if
// ask is not nil; and none that was made meanwhile. With Try it says which one it would take back.
func (c *Core) Undo(ctx context.Context, id int64, by override.Edit, ask func(override.Record) error) (undone override.Record, err error) {
	editor, err := c.Editor()
	if err != nil {
		return undone, err
	}
	try := by.Try
	by.Try = true
	undone, err = editor.Undo(ctx, id, by)
	if err == nil && !try {
		if undone.Who != by.Who && ask != nil {
			if err := ask(undone); err != nil {
				return undone, err
			}
		}
		by.Try = false
		undone, err = editor.Undo(ctx, undone.ID, by)
	}
	if errors.Is(err, override.ErrNoRecord) {
		err = Failure{true, fmt.Sprintf("%v; ratectl history lists those that there are", err)}
	}
	return undone, err
}
