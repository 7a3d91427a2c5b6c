package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

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
	of      string
}

func historyEntryOf(r override.Record) historyEntry {
	e := historyEntry{ID: r.ID, At: r.At, Who: r.Who, Why: r.Why, Rule: r.Rule, Undoes: r.Undoes, Before: jsonOf(r.Before), After: jsonOf(r.After), of: describe(r.Target)}
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
		if why != "" {
			why = ": " + why
		}
		why = fmt.Sprintf("undo %d%s", e.Undoes, why)
	}
	return []string{strconv.FormatInt(e.ID, 10), e.At.UTC().Format(time.RFC3339), cmp.Or(e.Who, "-"), e.of, dash(e.Before), dash(e.After), cmp.Or(why, "-")}
}

func dash(text json.RawMessage) string {
	if string(text) == "null" {
		return "-"
	}
	return string(text)
}

// historyList prints the last changes of the hash.
func historyList(ctx context.Context, o *operator, _ []string) error {
	editor, err := o.editor()
	if err != nil {
		return err
	}
	records, err := editor.History(ctx, o.most)
	if err != nil {
		return o.explained(err)
	}
	entries := make([]historyEntry, len(records))
	for i, r := range records {
		entries[i] = historyEntryOf(r)
	}
	return printEach(o, "CHANGE AT WHO OF BEFORE AFTER WHY", entries, historyEntry.row)
}

// undo takes a change back.
func undo(ctx context.Context, o *operator, args []string) error {
	id := int64(0)
	if len(args) > 0 {
		var err error
		if id, err = strconv.ParseInt(args[0], 10, 64); err != nil || id < 1 {
			return usagef("undo %q: write the number of a change, as ratectl history shows it", args[0])
		}
	}
	editor, err := o.editor()
	if err != nil {
		return err
	}
	undone, err := editor.Undo(ctx, id, override.Edit{Who: o.author(), Why: o.why, Try: o.dry})
	switch {
	case errors.Is(err, override.ErrNoRecord):
		return nothingf("%v; ratectl history lists those that there are", err)
	case err != nil:
		return o.explained(err)
	}
	e := historyEntryOf(undone)
	if o.json() {
		return o.printJSON(struct {
			Undone historyEntry `json:"undone"`
			DryRun bool         `json:"dry_run,omitempty"`
		}{e, o.dry})
	}
	verb, end := "is", ""
	if o.dry {
		verb, end = "would be", "; nothing is changed"
	}
	o.printf("%s: the override %s %s again; %d, by %s, had made it %s%s", e.of, verb, cmp.Or(undone.Before, "gone"), e.ID, cmp.Or(e.Who, "somebody"), cmp.Or(undone.After, "go"), end)
	return nil
}
