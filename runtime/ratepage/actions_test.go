package ratepage

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// A notebook is an editor that notes what it is asked for.
type notebook struct {
	edits   []string
	err     error
	nothing bool // there is nothing to take back
	entries []override.Entry
	records []override.Record
}

func (n *notebook) Edit(_ ctx, e override.Edit) (override.Edited, error) {
	text := e.Rule
	if e.Keys {
		text += fmt.Sprintf(" key %q", e.Pattern)
	}
	if e.Shares {
		text += fmt.Sprintf(" share %q", e.Pattern)
	}
	if e.Remove {
		text += " removed"
	} else if len(e.Clear) > 0 {
		text += " without " + strings.Join(e.Clear, ",")
	} else {
		text += " " + override.Change{Values: override.Values{KeyOverride: e.Set, Block: e.Block, Allow: e.Allow}}.String()
	}
	if e.For > 0 {
		text += " for " + e.For.String()
	}
	if e.Endless {
		text += " endless"
	}
	n.edits = append(n.edits, text+" by "+e.Who+e.Why)
	return override.Edited{Found: !n.nothing}, n.err
}

func (n *notebook) Undo(_ ctx, id int64, by override.Edit) (override.Record, error) {
	if !by.Try {
		n.edits = append(n.edits, fmt.Sprintf("undo %d by %s", id, by.Who))
	}
	return override.Record{Target: override.Target{Rule: "r"}}, n.err
}

func (n *notebook) Note(_ ctx, r override.Record) (int64, error) {
	n.edits = append(n.edits, fmt.Sprintf("%s of %s key %q, which was %s, by %s%s", r.Did, r.Rule, r.Pattern, r.Before, r.Who, r.Why))
	return 1, n.err
}

func (n *notebook) List(ctx) ([]override.Entry, error) { return n.entries, n.err }

func (n *notebook) History(ctx, int) ([]override.Record, error) { return n.records, n.err }

const asJSON = "application/json"

func post(page *Page, body string, headers ...string) (int, string) {
	w := ask(page, "POST", "/api/actions", body, append([]string{"Content-Type", asJSON}, headers...)...)
	return w.Code, w.Body.String()
}

// TestOverrides wants what the editor knows to be shown, and keys masked.
func TestOverrides(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(time.Hour)
	key := override.Target{Rule: "r", Pattern: "mallory", Keys: true}
	editor := &notebook{
		entries: []override.Entry{{Target: key, Change: override.Change{Values: override.Values{Block: true}, Until: end}}, {Target: override.Target{Rule: "r"}, Change: override.Change{Values: override.Values{KeyOverride: rule.KeyOverride{Max: new(int64(7))}}, Until: time.Unix(1e9, 0)}}},
		records: []override.Record{{ID: 3, Who: "ada", Why: "ticket 7", Target: key, After: `{"block":true}`}},
	}
	for _, keys := range []struct {
		option Option
		shown  string
	}{{WithKeys(), "m•••y"}, {WithPlainKeys(), "mallory"}} {
		page := New(keys.option, WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, editor))
		v := decoded[struct{ Entries, History []map[string]any }](t, ask(page, "GET", "/api/overrides", ""))
		ends := end.Format(time.RFC3339Nano)
		want := []map[string]any{
			{"rule": "r", "pattern": keys.shown, "block": true, "until": ends, "says": map[string]any{"block": true, "until": end.UTC().Format(time.RFC3339Nano)}},
			{"rule": "r", "pattern": nil, "max": 7.0, "ended": true, "until": time.Unix(1e9, 0).Format(time.RFC3339Nano), "says": map[string]any{"max": 7.0, "until": "2001-09-09T01:46:40Z"}},
		}
		if diff := cmp.Diff(want, v.Entries); diff != "" {
			t.Error(diff)
		}
		want = []map[string]any{{"id": 3.0, "at": "0001-01-01T00:00:00Z", "rule": "r", "pattern": keys.shown, "who": "ada", "why": "ticket 7", "before": nil, "after": map[string]any{"block": true}}}
		if diff := cmp.Diff(want, v.History); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWrongAddresses wants a program that names no host or no origin to be told so.
func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	refused := func(what string, option func() *Page, says string) {
		t.Helper()
		defer func() {
			if said := fmt.Sprint(recover()); !strings.Contains(said, says) {
				t.Errorf("%s: %s", what, said)
			}
		}()
		option()
	}
	for _, origin := range []string{"limits.example.com", "https://limits.example.com/ops", "", "https://"} {
		refused(origin, func() *Page { return New(WithTrustedOrigins(origin)) }, "write it as in https://limits.example.com")
	}
	for _, host := range []string{"", "a:80", "https://a", "a b"} {
		refused(host, func() *Page { return New(WithHosts(host)) }, "as in limits.example.com")
	}
}
