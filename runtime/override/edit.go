package override

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// An Edit is one change of an override.
type Edit struct {
	Target
	// Set has the fields that are to be set: those that are not nil. Block and Allow
	// are set if they are true. The other fields of the override stay as they are.
	Set          rule.KeyOverride
	Block, Allow bool
	// Clear names fields that are to be removed, as they are called in the hash:
	// max, burst, window, mode, enabled, weight, block and allow.
	Clear []string
	// Remove removes the whole override, also a broken one. That of a rule
	// leaves those of its keys and shares. A field of the hash that names no target is removed by
	// its own name as the Rule.
	Remove bool
	// Until is when the fields of Set, Block and Allow expire. Their permanent values hold
	// again then. If it is zero, fields that have an expiry keep it.
	Until time.Time
	// For says in place of Until for how long they hold, by the clock of Redis, and a second longer at most.
	For time.Duration
	// Endless removes the expiry of these fields.
	Endless bool
	// Who and Why are written to the history: who makes the change, and what for.
	Who, Why string
	// Try changes nothing: it only finds out what the edit would do.
	Try bool
}

// An Edited is what an edit has done.
type Edited struct {
	Before, After Change // empty: there was or is none
	// Found is whether there was what was to be removed.
	Found bool
	// ID is the number of the change in the history. It is 0 if nothing has changed.
	ID int64
}

// Edit changes the override of a target, and notes that in the history. An override,
// or a field of one, that has ended is none.
func (e *Editor) Edit(ctx context.Context, edit Edit) (done Edited, err error) {
	all, id, err := e.EditAll(ctx, edit, []Edit{edit})
	if err == nil {
		done, done.ID = all[0], id
	}
	return done, err
}

// EditAll makes edits of several targets as one change, which has one record in the history, and one
// undo. Of the first edit it needs what the record says: Target, Who, Why and Try.
func (e *Editor) EditAll(ctx context.Context, by Edit, edits []Edit) (all []Edited, id int64, err error) {
	removes := len(edits) > 0 // and nothing else, also from a hash that is broken
	for _, edit := range edits {
		if err := edit.check(); err != nil {
			return nil, 0, private.Errorf("override: %w", err)
		}
		removes = removes && edit.Remove
	}
	record := Record{Who: by.Who, Why: by.Why, Target: by.Target}
	err = e.change(ctx, &record, by.Try, func(fields map[string]string, now time.Time) error {
		before := maps.Clone(fields)
		if all, err = applyAll(edits, fields, now); err != nil {
			return err
		}
		if len(edits) > 1 && changesOf(before, fields).size() > maxRecorded {
			return private.Errorf("the change of %d overrides is too long to be undone: name fewer at a time", len(edits))
		}
		if removes {
			return nil
		}
		return e.check(fields)
	})
	return all, record.ID, err
}

// applyAll makes edits in the fields of the hash, each as apply does.
func applyAll(edits []Edit, fields map[string]string, now time.Time) (all []Edited, err error) {
	all = make([]Edited, len(edits))
	x := indexOf(fields)
	for i, edit := range edits {
		if all[i], err = edit.apply(x, fields, now); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// apply makes an edit in the fields of the hash. What it makes of them is not checked, unless it removes.
func (e *Edit) apply(x index, fields map[string]string, now time.Time) (done Edited, err error) {
	t := e.Target
	if e.For > 0 {
		e.Until = now.Add(e.For + time.Second - 1).Truncate(time.Second)
	}
	if expired(e.Until, now) {
		return done, private.Errorf("the end, %v, is over: it is %v in Redis", e.Until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	field := x.field(fields, t)
	_, before, err := changeIn(fields, field)
	if e.Remove {
		done.Before = before
		for _, field := range x[t] {
			if _, is := fields[field]; is {
				delete(fields, field)
				done.Found = true
			}
		}
		return done, nil
	}
	if err != nil {
		return done, private.Errorf("%w: remove this override first", err)
	}
	done.Before = before.left(now)
	if done.After = done.Before.with(*e); done.After.Empty() {
		delete(fields, field)
	} else {
		fields[field] = done.After.String()
	}
	has := done.Before.names()
	done.Found = slices.ContainsFunc(e.Clear, func(name string) bool { return slices.Contains(has, name) })
	return done, nil
}

func (e *Edit) check() error {
	sets := e.Set != (rule.KeyOverride{}) || e.Block || e.Allow
	t := e.Target
	switch {
	case e.Remove && (sets || len(e.Clear) > 0) || !e.Remove && !sets && len(e.Clear) == 0:
		return errors.New("the edit has no field, or removes all and sets some: say one of them")
	case e.Remove:
		return nil
	case t.Rule == "":
		return errors.New("no rule is named")
	case t.Rule == All && (t.list() != "" || e.Block || e.Allow || e.Set != rule.KeyOverride{Enabled: e.Set.Enabled}):
		return errors.New("* is for all limits, and says enabled only: name a rule")
	case !t.Keys && (e.Block || e.Allow):
		return errors.New("block and allow are for keys: a rule has max and enabled")
	case t.Shares && e.Set != rule.KeyOverride{Weight: e.Set.Weight}:
		return errors.New("a share has a weight alone: give the rule or its keys what is beside it")
	case !t.Shares && e.Set.Weight != nil:
		return errors.New("a weight is of a share: name that")
	case e.For < 0 || e.For > 0 && (e.Endless || !e.Until.IsZero()):
		return private.Errorf("it is to hold for %v, and Until or Endless say otherwise: say one of them", e.For)
	case !e.Until.IsZero() && (e.Endless || e.Until.Year() > 9999):
		return private.Errorf("the end, %v, is beyond the year 9999, or is to be none", e.Until)
	}
	for _, name := range e.Clear {
		if !slices.Contains(fieldNames, name) {
			return private.Errorf("unknown field %.80q: there are %s", name, strings.Join(fieldNames, ", "))
		}
	}
	if named, err := targetOf(fieldOf(t)); err != nil || named != t { // JSON cannot hold it
		return private.Errorf("no field can name rule %.80q, pattern %.80q: write a byte above 0x7F of a key or share as %%XX", t.Rule, private.Text(t.Pattern))
	}
	return nil
}
