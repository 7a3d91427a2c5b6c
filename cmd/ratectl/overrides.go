package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An overrideEntry is an override in JSON.
type overrideEntry struct {
	Rule    string               `json:"rule"`    // * for all limits
	Pattern *string              `json:"pattern"` // null: it is for the rule
	Block   bool                 `json:"block,omitempty"`
	Allow   bool                 `json:"allow,omitempty"`
	Enabled *bool                `json:"enabled,omitempty"`
	Max     *int64               `json:"max,omitempty"`
	Window  string               `json:"window,omitempty"`
	Mode    string               `json:"mode,omitempty"`
	Until   *time.Time           `json:"until,omitempty"` // when all of it ends
	Ends    map[string]time.Time `json:"ends,omitempty"`  // of fields, if not all have the same
	Says    json.RawMessage      `json:"says"`            // as it stands in the hash
	change  override.Change
}

func entryOf(t override.Target, c override.Change) overrideEntry {
	entry := overrideEntry{Rule: t.Rule, Block: c.Block, Allow: c.Allow, Enabled: c.Enabled, Max: c.Max, Ends: c.Ends, Says: json.RawMessage(c.String()), change: c}
	if t.Keys {
		entry.Pattern = &t.Pattern
	}
	if c.Window != nil {
		entry.Window = c.Window.String()
	}
	if c.Mode != nil {
		entry.Mode = c.Mode.String()
	}
	if !c.Until.IsZero() {
		entry.Until = &c.Until
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
	if said.Then == (override.Values{}) {
		said.Until = time.Time{}
	}
	return []string{e.Rule, pattern, said.String(), until}
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
		shown[i] = entryOf(e.Target, e.Change)
	}
	if err := printEach(o, "RULE KEYS OVERRIDE UNTIL", shown, overrideEntry.row); err != nil || o.json() {
		return err
	}
	switch f, err := o.following(ctx); {
	case err != nil:
		return err
	case f.Follow == 0:
		o.printf("%v", f)
	default:
		o.printf("in force in %d of the %d processes that report and follow the hash", o.current(ctx, f), f.Follow)
	}
	return nil
}

// overrideSet changes an override as the flags say.
func overrideSet(ctx context.Context, o *operator, args []string) (err error) {
	var e override.Edit
	if e.Target, err = o.target(args[0]); err != nil {
		return err
	}
	if e.Set, err = o.change(); err != nil {
		return err
	}
	return o.edit(ctx, e)
}

// overrideRemove takes an override or some of its fields away, also that of a rule
// which has gone.
func overrideRemove(ctx context.Context, o *operator, args []string) error {
	e := override.Edit{Target: override.Target{Rule: args[0], Pattern: o.pattern, Keys: o.given["keys"]}, Remove: true}
	if o.given["only"] {
		e.Remove, e.Clear = false, strings.Split(o.only, ",")
	}
	return o.edit(ctx, e)
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

// ownText returns what an override says of the rule, without its keys.
func ownText(o runtime.Override) string {
	c := override.Change{Values: override.Values{KeyOverride: runtime.KeyOverride{Enabled: o.Enabled, Max: o.Max, Window: o.Window, Mode: o.Mode}}}
	if c.KeyOverride == (runtime.KeyOverride{}) {
		return ""
	}
	return c.String()
}
