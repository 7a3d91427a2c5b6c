package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An overrideEntry is an override in JSON.
type overrideEntry struct {
	Rule    string     `json:"rule"`    // * for all limits
	Pattern *string    `json:"pattern"` // null: it is for the rule
	Enabled *bool      `json:"enabled,omitempty"`
	Max     *int64     `json:"max,omitempty"`
	Window  string     `json:"window,omitempty"`
	Mode    string     `json:"mode,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
	change  override.Change
}

func entryOf(e override.Entry) overrideEntry {
	entry := overrideEntry{Rule: e.Rule, Enabled: e.Enabled, Max: e.Max, change: e.Change}
	if e.Keys {
		entry.Pattern = &e.Pattern
	}
	if e.Window != nil {
		entry.Window = e.Window.String()
	}
	if e.Mode != nil {
		entry.Mode = e.Mode.String()
	}
	if !e.Until.IsZero() {
		entry.Until = &e.Until
	}
	return entry
}

// describe returns what the override is for and what it says.
func (e overrideEntry) describe() string {
	if e.Pattern != nil {
		return fmt.Sprintf("%v for %s", e.change, printable(*e.Pattern))
	}
	return fmt.Sprintf("%v for %s", e.change, map[bool]string{true: "all limits", false: "the rule"}[e.Rule == override.All])
}

func (e overrideEntry) row() []string {
	pattern, until := "-", "-"
	if e.Pattern != nil {
		pattern = printable(*e.Pattern)
	}
	if e.Until != nil {
		until = e.Until.UTC().Format(time.RFC3339)
		if !time.Now().Before(*e.Until) {
			until += " (over)"
		}
	}
	said := e.change
	said.Until = time.Time{}
	return []string{e.Rule, pattern, said.String(), until}
}

// An edited is an override before and after a change.
type edited struct {
	Before *overrideEntry `json:"before"` // null: there was none
	After  *overrideEntry `json:"after"`
}

// entries returns the overrides in the hash.
func (o *operator) entries(ctx context.Context) ([]override.Entry, error) {
	edit, err := o.editor()
	if err != nil {
		return nil, err
	}
	entries, err := edit.List(ctx)
	if err != nil {
		return nil, o.explained(err)
	}
	return entries, nil
}

// overrideList prints the overrides in the hash.
func overrideList(ctx context.Context, o *operator, _ []string) error {
	entries, err := o.entries(ctx)
	if err != nil {
		return err
	}
	shown := make([]overrideEntry, len(entries))
	for i, e := range entries {
		shown[i] = entryOf(e)
	}
	return each(o, "RULE KEYS OVERRIDE UNTIL", shown, overrideEntry.row)
}

// overrideSet changes an override as the flags say.
func overrideSet(ctx context.Context, o *operator, args []string) error {
	target, err := o.target(args[0])
	if err != nil {
		return err
	}
	c, err := o.change()
	if err != nil {
		return err
	}
	if target.Rule == override.All && c.Enabled != nil && !*c.Enabled {
		if err := o.confirm(ctx, "take all limits away in every program that reads %q", o.overrides); err != nil {
			return err
		}
	}
	return o.set(ctx, target, c)
}

// overrideRemove takes an override away, also that of a rule which has gone.
func overrideRemove(ctx context.Context, o *operator, args []string) error {
	return o.remove(ctx, override.Target{Rule: args[0], Pattern: o.pattern, Keys: o.given["keys"]})
}

// target returns what an override is for.
func (o *operator) target(rule string) (override.Target, error) {
	t := override.Target{Rule: rule, Pattern: o.pattern, Keys: o.given["keys"]}
	if rule == override.All {
		return t, nil
	}
	d, err := o.rule(rule)
	if err == nil {
		t.Rule = d.Name // it may be named by its prefix
	}
	return t, err
}

// set changes an override, and prints it before and after.
func (o *operator) set(ctx context.Context, target override.Target, c override.Change) (err error) {
	edit, err := o.editor()
	if err != nil {
		return err
	}
	if c.Until, err = o.end(ctx); err != nil {
		return err
	}
	before, after, err := edit.Set(ctx, target, c)
	if err != nil {
		return o.explained(err)
	}
	now := entryOf(override.Entry{Target: target, Change: after})
	answer := edited{After: &now}
	was := "there was none"
	if before.KeyOverride != (runtime.KeyOverride{}) {
		was = "it was " + before.String()
		answer.Before = new(entryOf(override.Entry{Target: target, Change: before}))
	}
	if o.json() {
		return o.printJSON(answer)
	}
	o.printf("%s: the override is %s; %s", target.Rule, now.describe(), was)
	return nil
}

// remove takes an override away.
func (o *operator) remove(ctx context.Context, target override.Target) error {
	edit, err := o.editor()
	if err != nil {
		return err
	}
	found, err := edit.Remove(ctx, target)
	of := target.Rule
	if target.Keys {
		of = fmt.Sprintf("%s of rule %s", printable(target.Pattern), target.Rule)
	}
	switch {
	case err != nil:
		return o.explained(err)
	case !found:
		return nothingf("%s has no override in %q; ratectl override ls lists them", of, o.overrides)
	case o.json():
		return o.printJSON(map[string]any{"removed": entryOf(override.Entry{Target: target})})
	}
	o.printf("%s: the override is gone", of)
	return nil
}

// ownText returns what an override says of the rule, without its keys.
func ownText(o runtime.Override) string {
	c := override.Change{KeyOverride: runtime.KeyOverride{Enabled: o.Enabled, Max: o.Max, Window: o.Window, Mode: o.Mode}}
	if c.KeyOverride == (runtime.KeyOverride{}) {
		return ""
	}
	return c.String()
}
