package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

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
	e := historyEntry{ID: r.ID, At: r.At, Who: r.Who, Why: r.Why, Rule: r.Rule, Undoes: r.Undoes, Did: r.Did, Several: r.Several, Before: jsonOf(r.Before), After: jsonOf(r.After), of: describe(r.Target)}
	if r.Keys {
		e.Pattern = &r.Pattern
	}
	return e
}

// jsonOf returns what a field of the hash said, which may have been no JSON.
func jsonOf(text string) json.RawMessage {
	switch {
	case text == "":
		return json.RawMessage("null")
	case !json.Valid([]byte(text)):
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
	limit int
}

func (c *historyCommand) about() about {
	return about{
		name: "history", short: "list what operators have changed, the last one first", needs: prints | needRedis, flags: []cli.Flag{limitFlag(&c.limit)},
		long: "Lists the last 500 changes of overrides, resets, releases, imports and expiries by ratectl, live pages and override.Editor: who, when, why, before and after. Changes by other programs are not recorded.",
	}
}

func (c *historyCommand) run(ctx context.Context, _ []string) error {
	editor, err := c.editor()
	if err != nil {
		return err
	}
	records, err := editor.History(ctx, c.limit)
	if err != nil {
		return err
	}
	entries := make([]historyEntry, len(records))
	for i, r := range records {
		entries[i] = historyEntryOf(r)
	}
	return printEach(&c.printer, "CHANGE AT WHO OF BEFORE AFTER WHY", entries, historyEntry.row)
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
	editor, err := c.editor()
	if err != nil {
		return err
	}
	by := override.Edit{Who: c.author(), Why: c.why, Try: true}
	undone, err := editor.Undo(ctx, id, by)
	if err == nil && !c.dry {
		if undone.Who != by.Who {
			if err := c.confirm(ctx, "undo change %d of %s, by %s%s", undone.ID, describe(undone.Target), cmp.Or(undone.Who, "somebody"), strings.TrimSuffix(": "+undone.Why, ": ")); err != nil {
				return err
			}
		}
		by.Try = false
		undone, err = editor.Undo(ctx, undone.ID, by) // and none that was made meanwhile
	}
	switch {
	case errors.Is(err, override.ErrNoRecord):
		return nothingf("%v; ratectl history lists those that there are", err)
	case err != nil:
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
