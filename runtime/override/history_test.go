package override

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// The history is bounded in time and in bytes, and entries that no editor has written break neither it
// nor an undo.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	editor, key := NewEditor(client, "limits"), historyKey("limits")
	edit := func(rule string, n int64) int64 {
		t.Helper()
		e := toMax(n)
		e.Target, e.Why = ofRule(rule), strings.Repeat("w", 600_000)
		done, err := editor.Edit(ctx, e)
		limittest.OK(t, err)
		return done.ID
	}
	old := storedOf(&Record{ID: 1, At: time.Now().Add(-keepRecords - time.Minute), Target: ofRule("r")})
	client.RPush(ctx, key, strings.Replace(old, `"id":1`, `"id":3`, 1), "mine", old)
	for n := range int64(10) {
		if id := edit("r", n); id != n+4 {
			t.Errorf("change %d has the number %d", n, id)
		}
		if n == 0 && client.LLen(ctx, key).Val() != 1 {
			t.Errorf("changes of a month ago are left: %d", client.LLen(ctx, key).Val())
		}
	}
	if n := client.LLen(ctx, key).Val(); n != maxHistory/600_000+1 {
		t.Errorf("%d records", n)
	}
	long := `{"max": 1` + strings.Repeat(" ", maxRecorded) + `}`
	client.HSet(ctx, "limits", "s", long)
	edit("s", 1)
	if _, err := editor.Undo(ctx, 0, Edit{}); err == nil || !strings.Contains(err.Error(), "too long for the history") {
		t.Errorf("got %v", err)
	}
	last := edit("r", 77)
	client.LPush(ctx, key, "mine", `{"id":9007199254740993,"rule":"r"}`, `{"id":-1}`, `[]`, "null")
	if undone, err := editor.Undo(ctx, 0, Edit{}); err != nil || undone.ID != last || client.HGet(ctx, "limits", "r").Val() != `{"max":9}` {
		t.Errorf("undone %d of %d: %v", undone.ID, last, err)
	}
	if id := edit("r", 78); id != last+2 {
		t.Errorf("the next change has the number %d", id)
	}
	records, err := editor.History(ctx, 4)
	if err != nil || records[0].ID != last+2 || records[2].ID != 0 || records[2].Did == "" {
		t.Errorf("%v, %v", records, err)
	}
	if b, err := editor.Backup(ctx); err != nil || len(b.History) != int(client.LLen(ctx, key).Val())-5 {
		t.Errorf("%d changes are kept elsewhere, %v", len(b.History), err)
	}
}

// Edits of many targets take as many steps for each as those of few. The history has all as one change, by
// what it has changed.
func TestEditAllIsLinear(t *testing.T) {
	steps := func(n int) float64 {
		var edits []Edit
		fields := map[string]string{}
		for i := range n {
			for _, target := range []Target{ofRule(fmt.Sprint("r", i)), ofKeys("r0", fmt.Sprint("k", i))} {
				fields[fieldOf(target)] = `{"max":1}`
				edits = append(edits, Edit{Target: target, Set: toMax(2).Set})
			}
		}
		return testing.AllocsPerRun(1, func() {
			if _, err := applyAll(edits, maps.Clone(fields), time.Now()); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := steps(100), steps(800); many > 10*few {
		t.Errorf("%v allocations for 200 edits, %v for 1600", few, many)
	}
	r := Record{changes: changesOf(map[string]string{"a": `{"max":1}`, `["a","k"]`: `{"max":1}`}, map[string]string{"a": `{"max":2}`, `["a","k"]`: `{"max":1}`, `["b","k"]`: `{"max":3}`})}
	if got, want := r.Targets(), map[Target]bool{ofRule("a"): true, ofKeys("b", "k"): true}; !maps.Equal(got, want) {
		t.Errorf("changed were %v, want %v", got, want)
	}
}

// What is done beside the overrides is in their history, and cannot be undone: also beside a
// hash that is broken.
func TestNote(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	client.Set(ctx, "limits", "no hash", 0)
	editor := NewEditor(client, "limits")
	wanted := Record{Who: "ada", Why: "ticket 7", Target: ofKeys("r", "acme"), Did: "reset", Before: "refused, 5 used"}
	for n := range int64(2) {
		if id, err := editor.Note(ctx, wanted); err != nil || id != n+1 {
			t.Fatalf("note %d: %d, %v", n+1, id, err)
		}
	}
	records, err := editor.History(ctx, 10)
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	got := records[0]
	if got.ID != 2 || got.At.IsZero() || got.Who != wanted.Who || got.Why != wanted.Why || got.Target != wanted.Target || got.Did != wanted.Did || got.Before != wanted.Before {
		t.Errorf("%+v", got)
	}
	for _, id := range []int64{0, 1, 2} { // without a number no change before it is undone in its place
		if _, err := editor.Undo(ctx, id, Edit{}); err == nil || !strings.Contains(err.Error(), `it was "reset", which cannot be undone`) {
			t.Errorf("undo %d: %v", id, err)
		}
	}
	if _, err := editor.Note(ctx, Record{}); err == nil {
		t.Error("a note of nothing is taken")
	}
}

// A hash and its history are moved to another Redis as they are. What is there stays, unless it
// is to be overwritten, and what a limiter would reject is not written.
func TestBackup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	from, to := NewEditor(client, "limits"), NewEditor(client, "others")
	for _, e := range []Edit{{Target: ofKeys("r", "acme"), Block: true, Who: "ada"}, {Target: ofRule("r"), Set: toMax(7).Set, Who: "bob"}} {
		if _, err := from.Edit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	b, err := from.Backup(ctx)
	if err != nil || len(b.Fields) != 2 || len(b.History) != 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	restore := func(overwrite, try bool, fields, records int, want map[string]string) {
		t.Helper()
		f, r, err := to.Restore(ctx, b, overwrite, Edit{Who: "eve", Try: try})
		if err != nil || f != fields || r != records {
			t.Errorf("%d fields, %d records, %v, want %d and %d", f, r, err, fields, records)
		}
		if diff := cmp.Diff(want, client.HGetAll(ctx, "others").Val()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	restore(false, true, 2, 0, map[string]string{})
	client.HSet(ctx, "others", "r", `{"max":9}`)
	restore(false, false, 1, 2, map[string]string{"r": `{"max":9}`, `["r","acme"]`: `{"block":true}`})
	restore(true, false, 1, 0, b.Fields)
	restore(true, false, 0, 0, b.Fields)
	if h, err := to.History(ctx, 10); err != nil || len(h) != 4 || h[3].Who != "ada" || h[0].Who != "eve" || h[0].ID != 4 {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := to.Undo(ctx, 4, Edit{}); err != nil || client.HGet(ctx, "others", "r").Val() != `{"max":9}` {
		t.Error(err)
	}
	for _, bad := range []Backup{{Fields: map[string]string{"r": `{"max":"x"}`}}, {History: []string{"mine"}}} {
		if f, r, err := to.Restore(ctx, bad, true, Edit{}); err == nil {
			t.Errorf("%+v: %d fields, %d records", bad, f, r)
		}
	}
}

// Overrides are renamed with their rules, also where two change their names, and none is lost.
func TestRename(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"a": "1", `["a","k"]`: "2", "b": "3", `["b","k"]`: "4", "*": "5", `["[x"]`: "6"}
	b := Backup{Fields: maps.Clone(fields)}
	found, err := b.Rename(map[string]string{"a": "b", "b": "[y", "gone": "c"})
	want := map[string]string{"b": "1", `["b","k"]`: "2", `["[y"]`: "3", `["[y","k"]`: "4", "*": "5", `["[x"]`: "6"}
	if diff := cmp.Diff(want, b.Fields); err != nil || diff != "" || !found["a"] || !found["b"] || found["gone"] {
		t.Error(err, found, diff)
	}
	b.Fields = maps.Clone(fields)
	if _, err := b.Rename(map[string]string{"a": "b"}); err == nil || !maps.Equal(fields, b.Fields) {
		t.Error("two overrides have one field: ", err, b.Fields)
	}
}
