package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
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
	Who     string               `json:"who,omitempty"`   // has made it, if the history knows
	Why     string               `json:"why,omitempty"`
	At      *time.Time           `json:"at,omitempty"`
	change  override.Change
}

// entriesOf returns overrides as JSON has them.
func entriesOf(overrides []operate.Override) []overrideEntry {
	all := make([]overrideEntry, len(overrides))
	for i, o := range overrides {
		all[i] = entryOf(o.Target, o.Change)
		if o.Last != nil {
			all[i].Who, all[i].Why, all[i].At = o.Last.Who, o.Last.Why, &o.Last.At
		}
	}
	return all
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
	of := "the rule"
	if e.Pattern != nil {
		of = printed.Text(*e.Pattern)
	} else if e.Rule == override.All {
		of = "all limits"
	}
	text := fmt.Sprintf("%v for %s", e.change, of)
	if e.At != nil {
		text += fmt.Sprintf(", by %s at %s%s", cmp.Or(e.Who, "somebody"), e.At.UTC().Format(time.RFC3339), strings.TrimSuffix(": "+e.Why, ": "))
	}
	return text
}

func (e overrideEntry) row() []string {
	pattern, until := "-", "-"
	if e.Pattern != nil {
		pattern = printed.Text(*e.Pattern)
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

// An overrideListCommand prints the overrides in the hash.
type overrideListCommand struct{ session }

func (c *overrideListCommand) about() about {
	return about{
		name: "override ls", short: "list the overrides", needs: prints | needRedis,
		long: "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why.",
	}
}

func (c *overrideListCommand) run(ctx context.Context, _ []string) error {
	entries, err := c.Overrides(ctx)
	if err != nil {
		return err
	}
	if err := printEach(&c.printer, "RULE KEYS OVERRIDE UNTIL", entriesOf(entries), overrideEntry.row); err != nil || c.json() {
		return err
	}
	f, err := c.Following(ctx)
	if err != nil {
		return err
	}
	if f.Follow == 0 {
		c.printf("%v", f)
	} else {
		c.printf("%s", f.State())
	}
	return nil
}
