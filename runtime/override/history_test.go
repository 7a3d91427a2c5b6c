package override

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Every change is in the history, and can be taken back as long as nobody has changed
// the same again, on a cluster too.
func TestHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	for _, key := range []string{"limits", "{shop}:limits"} {
		editor := NewEditor(client, key)
		edit := func(target Target, e Edit) {
			t.Helper()
			e.Target, e.Who, e.Why = target, "ada", "ticket 7"
			if _, err := editor.Edit(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		says := func(want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, client.HGetAll(ctx, key).Val()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
		undo := func(id, undone int64) {
			t.Helper()
			if r, err := editor.Undo(ctx, id, Edit{Who: "bob"}); err != nil || r.ID != undone {
				t.Errorf("undo %d: of %d, %v, want %d", id, r.ID, err, undone)
			}
		}
		client.HSet(ctx, key, "r", `{ "max": 5 }`) // by hand
		edit(ofRule("r"), toMax(7))
		edit(ofKeys("r", "acme"), Edit{Block: true})
		edit(ofKeys("r", "acme"), Edit{Block: true}) // no change
		edit(ofKeys("r", "acme"), toMax(9))
		edit(ofKeys("r", "acme"), Edit{Clear: []string{"block"}})
		says(map[string]string{"r": `{"max":7}`, `["r","acme"]`: `{"max":9}`})

		if _, err := editor.Undo(ctx, 2, Edit{}); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "by ada in 4") {
			t.Errorf("undo of what was changed since: %v", err)
		}
		undo(0, 4)
		says(map[string]string{"r": `{"max":7}`, `["r","acme"]`: `{"block":true,"max":9}`})
		undo(0, 3)
		undo(1, 1)
		undo(0, 2)
		says(map[string]string{"r": `{ "max": 5 }`})
		if _, err := editor.Undo(ctx, 0, Edit{}); !errors.Is(err, ErrNoRecord) {
			t.Errorf("undo of nothing: %v", err)
		}
		undo(7, 7) // of an undo
		says(map[string]string{"r": `{"max":7}`})
		edit(ofRule("r"), Edit{Remove: true})
		client.HSet(ctx, key, "r", `{"max": 1}`)
		if _, err := editor.Undo(ctx, 0, Edit{}); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "by another program") {
			t.Errorf("undo of what another program has changed: %v", err)
		}

		records, err := editor.History(ctx, 100)
		if err != nil || len(records) != 10 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		var lines []string
		for _, r := range records {
			lines = append(lines, fmt.Sprintf("%d %s %q %s %s %v: %s -> %s, %d", r.ID, r.Who, r.Why, r.Rule, r.Pattern, r.Keys, r.Before, r.After, r.Undoes))
		}
		want := []string{
			`10 ada "ticket 7" r  false: {"max":7} -> , 0`,
			`9 bob "" r  false: {"max":5} -> {"max":7}, 7`,
			`8 bob "" r acme true: {"block":true} -> , 2`,
			`7 bob "" r  false: {"max":7} -> {"max":5}, 1`,
			`6 bob "" r acme true: {"block":true,"max":9} -> {"block":true}, 3`,
			`5 bob "" r acme true: {"max":9} -> {"block":true,"max":9}, 4`,
			`4 ada "ticket 7" r acme true: {"block":true,"max":9} -> {"max":9}, 0`,
			`3 ada "ticket 7" r acme true: {"block":true} -> {"block":true,"max":9}, 0`,
			`2 ada "ticket 7" r acme true:  -> {"block":true}, 0`,
			`1 ada "ticket 7" r  false: {"max":5} -> {"max":7}, 0`,
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// The history is bounded in changes and in bytes.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	editor := NewEditor(client, "limits")
	for n := range int64(maxRecords + 10) {
		edit := toMax(n)
		edit.Target = ofRule("r")
		if _, err := editor.Edit(ctx, edit); err != nil {
			t.Fatal(err)
		}
	}
	if n := client.LLen(ctx, historyKey("limits")).Val(); n != maxRecords {
		t.Errorf("%d records", n)
	}
	long := `{"keys": {"k": {"max": 1}` + strings.Repeat(" ", maxRecorded) + `}}`
	client.HSet(ctx, "limits", "s", long)
	edit := toMax(1)
	edit.Target = ofRule("s")
	if _, err := editor.Edit(ctx, edit); err != nil {
		t.Fatal(err)
	}
	if _, err := editor.Undo(ctx, 0, Edit{}); err == nil || !strings.Contains(err.Error(), "too long for the history") {
		t.Errorf("got %v", err)
	}
	client.LPush(ctx, historyKey("limits"), "mine")
	if _, err := editor.Edit(ctx, edit); err != nil {
		t.Error("an edit without an effect needs no history:", err)
	}
	edit.Set.Max = new(int64(2))
	if _, err := editor.Edit(ctx, edit); err == nil || !strings.Contains(err.Error(), "delete that key") {
		t.Errorf("a strange history: %v", err)
	}
}
