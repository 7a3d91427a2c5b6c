package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
)

// A Past is which changes of a history are asked for. What is empty is not asked about.
type Past struct {
	Since, Until   time.Duration // before now
	Who, Rule, Key string        // whole or the start of one and a *; of a key a part
	Most           int
}

type Record struct{ override.Record }

// MarshalJSON has what a field of the hash said before and after as it stands there, or a text if that was no JSON.
func (r Record) MarshalJSON() ([]byte, error) {
	return encoded(struct {
		ID      int64           `json:"id"`
		At      time.Time       `json:"at"`
		Who     string          `json:"who"`
		Why     string          `json:"why"`
		Rule    string          `json:"rule"`
		Pattern *string         `json:"pattern"`
		Shares  bool            `json:"shares,omitempty"` // the pattern is of shares
		Before  json.RawMessage `json:"before"`
		After   json.RawMessage `json:"after"`
		Undoes  int64           `json:"undoes,omitempty"`
		Did     string          `json:"did,omitempty"`     // if it was no change of overrides
		Several int             `json:"several,omitempty"` // overrides that it has changed: before and after are null
	}{r.ID, r.At, r.Who, r.Why, r.Rule, patternOf(r.Target), r.Shares, JSONOf(r.Before), JSONOf(r.After), r.Undoes, r.Did, r.Several})
}

// JSONOf returns what a field of the hash said, which may have been nothing, or no JSON.
func JSONOf(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	if !json.Valid([]byte(text)) {
		quoted, _ := json.Marshal(text)
		return quoted
	}
	return json.RawMessage(text)
}

// History returns the changes that operators have made, the last one first, and how many there are.
func (c *Core) History(ctx context.Context, p Past) (found []Record, all int, err error) {
	editor, err := c.changes()
	if err != nil {
		return nil, 0, err
	}
	var now time.Time
	if p.Since > 0 || p.Until > 0 {
		if now, err = c.Client.Time(ctx).Result(); err != nil {
			return nil, 0, err
		}
	}
	records, err := editor.History(ctx, 0)
	texts := Spellings(p.Key)
	for _, r := range records {
		age := now.Sub(r.At)
		if p.Since > 0 && age > p.Since || p.Until > 0 && age < p.Until || p.Who != "" && !alike(r.Who, p.Who) || (p.Rule != "" || p.Key != "") && !p.concerns(&r, texts) {
			continue
		}
		found = append(found, Record{r})
	}
	return found[:min(len(found), p.Most)], len(found), err
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

// Undo takes a change back, or the last one for 0, unless check returns an error for it; and none that was made
// meanwhile. With Try it says which one it would take back.
func (c *Core) Undo(ctx context.Context, id int64, by override.Edit, check func(override.Record) error) (Record, error) {
	editor, err := c.changes()
	if err != nil {
		return Record{}, err
	}
	try := by.Try
	by.Try = true
	undone, err := editor.Undo(ctx, id, by)
	if err == nil && !try {
		if err := check(undone); err != nil {
			return Record{undone}, err
		}
		by.Try = false
		undone, err = editor.Undo(ctx, cmp.Or(undone.ID, id), by)
	}
	return Record{undone}, err
}

// The ways of [Core.Clear]: Reset forgets everything about a key. Release ends its hold or block, and keeps its counts.
const (
	Reset   = "reset"
	Release = "release"
)

// Clear resets or releases a key, of which the state was known before, after the history has that: what cannot be
// noted is not done. But a full Redis takes no note, and a reset may free memory: then it is noted afterwards, if
// it can be.
func (c *Core) Clear(ctx context.Context, did string, r Rule, key *runtime.Key, before State, by override.Record) error {
	by.Target, by.Did = override.Target{Rule: r.Name, Pattern: key.Pattern(), Keys: true}, did
	by.Before = fmt.Sprintf("%s, %d used", before.State, before.Used)
	unnoted := c.Note(ctx, by)
	full := Replied(InFull(unnoted), "OOM")
	if unnoted != nil && !full {
		return unnoted
	}
	clear := c.Limiter.Reset
	if did == Release {
		clear = c.Limiter.Release
	}
	if err := clear(ctx, c.LimitOf(r, key)); err != nil {
		if class := runtime.ClassOf(err); class == observe.ClassTimeout || class == observe.ClassConnection {
			err = fmt.Errorf("whether the %s was made is not known: %w", did, err)
		}
		return err
	}
	if full && c.Note(ctx, by) != nil {
		c.warnf("it is in no history, since Redis is full")
	}
	return nil
}

// Note adds to the history what is about to be done to counts.
func (c *Core) Note(ctx context.Context, r override.Record) error {
	if c.Hash != "" || c.Changes != nil {
		editor, err := c.changes()
		if err == nil {
			_, err = editor.Note(ctx, r)
		}
		return err
	}
	if r.Why != "" {
		return Wrongf("-m is for the history, which is kept beside the overrides: name the hash with -overrides")
	}
	c.warnf("the history does not have this: it is kept beside the overrides, which -overrides names")
	return nil
}
