package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
)

// A historyEntry is a change of an override in JSON.
type historyEntry struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Who     string          `json:"who"`
	Why     string          `json:"why"`
	Rule    string          `json:"rule"`
	Pattern *string         `json:"pattern"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
	Undoes  int64           `json:"undoes,omitempty"`
	Did     string          `json:"did,omitempty"`     // if it was no change of overrides
	Several int             `json:"several,omitempty"` // overrides that it has changed: before and after are null
	of      string
}

func historyEntryOf(r override.Record) historyEntry {
	e := historyEntry{ID: r.ID, At: r.At, Who: r.Who, Why: r.Why, Rule: r.Rule, Undoes: r.Undoes, Did: r.Did, Several: r.Several, Before: jsonOf(r.Before), After: jsonOf(r.After), of: operate.TargetText(r.Target)}
	if r.Keys {
		e.Pattern = &r.Pattern
	}
	return e
}

// jsonOf returns what a field of the hash said, which may have been no JSON.
func jsonOf(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	if !json.Valid([]byte(text)) {
		quoted, _ := json.Marshal(text)
		return quoted
	}
	return json.RawMessage(text)
}

func (e historyEntry) row() []string {
	why := e.Why
	if e.Undoes > 0 {
		why = strings.TrimSuffix(fmt.Sprintf("undo %d: %s", e.Undoes, why), ": ")
	}
	dash := func(text json.RawMessage) string {
		if string(text) == "null" {
			return "-"
		}
		return string(text)
	}
	if e.Several > 0 {
		e.Did = fmt.Sprintf("%d overrides", e.Several)
	}
	return rowOf(e.ID, e.At.UTC().Format(time.RFC3339), cmp.Or(e.Who, "-"), e.of, dash(e.Before), cmp.Or(e.Did, dash(e.After)), cmp.Or(why, "-"))
}

// A historyCommand prints the last changes of the hash.
type historyCommand struct {
	session
	operate.Past
}

func (c *historyCommand) about() about {
	return about{
		name: "history", short: "list what operators have changed, the last one first", needs: prints | needRedis,
		long: "Lists the changes of overrides, resets, releases, imports and expiries by ratectl, live pages and override.Editor of the last 30 days, and 4 MiB of them at most: who, when, why, before and after. A change of several overrides is one. Changes by other programs are not recorded.",
		flags: []cli.Flag{
			limitFlag(&c.Most), duration(&c.Since, "since", 0, "how `long` to look back"), duration(&c.Until, "until", 0, "how `long` ago to end"),
			text(&c.Who, "who", "only changes by this `name`, or by those that start so and end with *"), text(&c.Past.Rule, "rule", "only changes of this `rule`, or of those that start so and end with *"), text(&c.Key, "key", "only changes of keys with this `text`"),
		},
	}
}

func (c *historyCommand) run(ctx context.Context, _ []string) error {
	if c.Since < 0 || c.Until < 0 || c.Since > 0 && c.Until >= c.Since {
		return usagef("-since %v -until %v: write a duration such as 3h, and for -until a shorter one", c.Since, c.Until)
	}
	records, all, err := c.History(ctx, c.Past)
	if err != nil {
		return err
	}
	entries := make([]historyEntry, len(records))
	for i, r := range records {
		entries[i] = historyEntryOf(r)
	}
	if err := printEach(&c.printer, "CHANGE AT WHO OF BEFORE AFTER WHY", entries, historyEntry.row); err != nil {
		return err
	}
	if all > len(entries) {
		c.logger().Printf("these are the last %d of %d changes, see -limit", len(entries), all)
	}
	return nil
}

// An undoCommand takes a change back.
type undoCommand struct{ editing }

func (c *undoCommand) about() about {
	return about{
		name: "undo", args: "[CHANGE]", short: "undo a change of overrides", needs: prints | needRedis | mayRules, max: 1, flags: append(c.changeFlags(), c.yesFlag()),
		long: "Restores the override from before the CHANGE, a number of history, by default the last change that is no undo and is not undone. Asks for confirmation if somebody else has made it. Refuses, and says who, if the same was changed since. An undo can be undone by its number; what was done to counts cannot.",
	}
}

func (c *undoCommand) run(ctx context.Context, args []string) (err error) {
	id := int64(0)
	if len(args) > 0 {
		if id, err = strconv.ParseInt(args[0], 10, 64); err != nil || id < 1 {
			return usagef("undo %q: write the number of a change, as ratectl history shows it", args[0])
		}
	}
	undone, err := c.Undo(ctx, id, override.Edit{Who: c.author(), Why: c.why, Try: c.dry}, func(r override.Record) error {
		return c.confirm(ctx, "undo change %d of %s, by %s%s", r.ID, operate.TargetText(r.Target), cmp.Or(r.Who, "somebody"), strings.TrimSuffix(": "+r.Why, ": "))
	})
	if err != nil {
		return err
	}
	e := historyEntryOf(undone)
	if c.json() {
		return cmp.Or(c.printJSON(struct {
			Undone historyEntry `json:"undone"`
			DryRun bool         `json:"dry_run,omitempty"`
		}{e, c.dry}), c.awaited(ctx))
	}
	verb, end := "is", ""
	if c.dry {
		verb, end = "would be", "; nothing is changed"
	}
	if e.Several > 0 {
		c.printf("%d overrides %s again as before change %d, by %s%s", e.Several, strings.ReplaceAll(verb, "is", "are"), e.ID, cmp.Or(e.Who, "somebody"), end)
		return c.awaited(ctx)
	}
	c.printf("%s: the override %s %s again; %d, by %s, had made it %s%s", e.of, verb, cmp.Or(undone.Before, "gone"), e.ID, cmp.Or(e.Who, "somebody"), cmp.Or(undone.After, "go"), end)
	return c.awaited(ctx)
}
