package ratepage

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
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

// TestActions carries each action out, and reads the log and the history of it.
func TestActions(t *testing.T) {
	t.Parallel()
	var editor notebook
	var log bytes.Buffer
	page := New(WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		WithActions(func(r *http.Request, a Action) (string, error) { return "ada", nil }, &editor))
	rule := &runtime.Rule{Name: "r", Max: 1, Window: time.Hour}
	peer := &runtime.Rule{Name: "peer", Max: 1, Window: time.Hour, Hold: true}
	divided := &runtime.Rule{Name: "cap", Max: 10, Window: time.Hour, Algorithm: runtime.TokenBucket, Headroom: 2}
	limiter := newLimiter(t, page, rule, peer, divided)
	key := runtime.NewKey().AddString("a:b*")
	for range 2 {
		_, _ = limiter.Take(t.Context(), rule.Limit(key))
	}
	if err := limiter.Hold(t.Context(), peer.Limit(key), time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"action":"reset","rule":"r","key":"a%3Ab*","why":" (8)"}`,
		`{"action":"release","rule":"peer","key":"a%3Ab*"}`,
		`{"action":"override","rule":"r","max":7,"window_ms":1500}`,
		`{"action":"override","rule":"r","max":0}`,
		`{"action":"block","rule":"r","key":"a%3Ab*"}`,
		`{"action":"unblock","rule":"r","key":""}`,
		`{"action":"shadow_on","rule":"r"}`,
		`{"action":"shadow_off","rule":"r"}`,
		`{"action":"restore","rule":"r"}`,
		`{"action":"block","rule":"r","key":"x","for_ms":3600000,"why":" (7)"}`,
		`{"action":"allow","rule":"r","key":"x","endless":true}`,
		`{"action":"unallow","rule":"r","key":"x"}`,
		`{"action":"override_key","rule":"r","key":"x","max":9,"for_ms":7200000,"why":" (9)"}`,
		`{"action":"restore_key","rule":"r","key":"x"}`,
		`{"action":"override","rule":"cap","burst":8}`,
		`{"action":"weigh","rule":"cap","key":"t*","weight":4,"for_ms":3600000}`,
		`{"action":"unweigh","rule":"cap","key":"t*"}`,
		`{"action":"undo","rule":"r","change":3}`,
	} {
		if status, answer := post(page, body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if _, err := limiter.Take(t.Context(), rule.Limit(key)); err != nil {
		t.Errorf("after its reset: %v", err)
	}
	if _, err := limiter.Take(t.Context(), peer.Limit(key)); err != nil {
		t.Errorf("after its release: %v", err)
	}
	want := []string{
		`reset of r key "a%3Ab%2A", which was refused, 1 used, by ada (8)`,
		`release of peer key "a%3Ab%2A", which was held, 1 used, by ada`,
		`r {"max":7,"window":"1.5s"} by ada`,
		`r {"max":0} by ada`,
		`r key "a%3Ab%2A" {"block":true} by ada`,
		`r key "" without block by ada`,
		`r {"mode":"shadow"} by ada`,
		`r {"mode":"enforce"} by ada`,
		`r removed by ada`,
		`r key "x" {"block":true} for 1h0m0s by ada (7)`,
		`r key "x" {"allow":true} endless by ada`,
		`r key "x" without allow by ada`,
		`r key "x" {"max":9} for 2h0m0s by ada (9)`,
		`r key "x" removed by ada`,
		`cap {"burst":8} by ada`,
		`cap share "t%2A" {"weight":4} for 1h0m0s by ada`,
		`cap share "t%2A" removed by ada`,
		`undo 3 by ada`,
	}
	if diff := cmp.Diff(want, editor.edits); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{
		`level=INFO msg="action on rate limits" who=ada from=192.0.2.1:1234 action=reset rule=r key_sha256=56712c59b6b30a6b`,
		`action=override rule=r max=7 window=1.5s`,
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, &log)
		}
	}
	if strings.Contains(log.String(), "a%3Ab") {
		t.Errorf("the log has the key:\n%s", &log)
	}
	history := page.history.view()
	if len(history) != 2 || history[1].Note != "a key was reset" || history[1].By != "ada" || history[0].Note != "the hold of a key was released" {
		t.Errorf("history %+v", history)
	}
}

// TestRefusedActions wants a clear answer to everything that must not change
// anything, and nothing changed.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	var editor notebook
	asked := 0
	page := New(WithLogger(quiet), WithTrustedOrigins("https://limits.example.com", "http://inside:8080"), WithActions(func(r *http.Request, a Action) (string, error) {
		asked++
		if r.Header.Get("Authorization") != "Bearer right" {
			return "", errors.New("log in first")
		}
		return "ada", nil
	}, &editor))
	newLimiter(t, page, &runtime.Rule{Name: "r", Max: 1, Window: time.Hour}, &runtime.Rule{Name: "slices", Max: 1, Window: time.Hour, Resolution: time.Second})
	good := `{"action":"override","rule":"r","max":7}`
	right := []string{"Authorization", "Bearer right"}
	for _, test := range []struct {
		name, body string
		headers    []string
		status     int
		text       string
	}{
		{"unauthorised", good, nil, 403, "log in first"},
		{"cross-site", good, append(right, "Sec-Fetch-Site", "cross-site"), 403, "cross-origin"},
		{"same-site", good, append(right, "Sec-Fetch-Site", "same-site"), 403, "cross-origin"},
		{"another origin", good, append(right, "Origin", "https://evil.example"), 403, `cross-origin request detected, and/or browser is out of date: Sec-Fetch-Site is missing, and Origin does not match Host, from \"https://evil.example\": if that is the address of this page before a proxy, the program trusts it by ratepage.WithTrustedOrigins`},
		{"a trusted host without TLS", good, append(right, "Origin", "http://limits.example.com"), 403, "WithTrustedOrigins"},
		{"a form", "action=reset", append(right, "Content-Type", "application/x-www-form-urlencoded"), 415, "application/json"},
		{"text", good, append(right, "Content-Type", "text/plain"), 415, "application/json"},
		{"no JSON", "{", right, 400, "body of the action"},
		{"bytes that are no text", `{"action":"reset","rule":"r","key":"caf` + "\xff" + `"}`, right, 400, "%XX"},
		{"two values", good + good, right, 400, "something follows"},
		{"an unknown field", `{"action":"reset","rule":"r","key":"x","force":true}`, right, 400, "unknown field"},
		{"a long body", `{"rule":"` + strings.Repeat("x", maxBody) + `"}`, right, 400, "too large"},
		{"an unknown action", `{"action":"drop","rule":"r"}`, right, 400, "the page offers reset, release, override"},
		{"an unknown rule", `{"action":"shadow_on","rule":"nobody"}`, right, 404, "no rule"},
		{"nothing to release", `{"action":"release","rule":"r","key":"x"}`, right, 400, "holds back no calls"},
		{"no key", `{"action":"block","rule":"r"}`, right, 400, "needs a key"},
		{"a key too many", `{"action":"shadow_on","rule":"r","key":"x"}`, right, 400, "has no key"},
		{"a bad key", `{"action":"block","rule":"r","key":"{x}"}`, right, 400, "no key has the byte"},
		{"no numbers", `{"action":"override","rule":"r"}`, right, 400, "needs max, burst or window_ms"},
		{"numbers too many", `{"action":"restore","rule":"r","max":1}`, right, 400, "has neither"},
		{"a share without", `{"action":"weigh","rule":"r","key":"t","weight":4}`, right, 400, "the rule divides nothing"},
		{"a weight of 0", `{"action":"weigh","rule":"r","key":"t","weight":0}`, right, 400, "weight 0 is not between"},
		{"no weight", `{"action":"weigh","rule":"r","key":"t"}`, right, 400, "weigh alone has a weight"},
		{"a burst of a log", `{"action":"override","rule":"r","burst":4}`, right, 400, "burst: a sliding-log"},
		{"a negative max", `{"action":"override","rule":"r","max":-1}`, right, 400, "max -1"},
		{"a fraction", `{"action":"override","rule":"r","max":1.5}`, right, 400, "1.5"},
		{"a max for no log", `{"action":"override","rule":"r","max":1000001}`, right, 400, "1000000"},
		{"a long window", `{"action":"override","rule":"r","window_ms":1e300}`, right, 400, "is not between"},
		{"a short window", `{"action":"override","rule":"r","window_ms":0.5}`, right, 400, "is not between"},
		{"an end of what has none", `{"action":"restore","rule":"r","for_ms":1000}`, right, 400, "neither for_ms"},
		{"two ends", `{"action":"shadow_on","rule":"r","for_ms":1000,"endless":true}`, right, 400, "leave one out"},
		{"a short end", `{"action":"shadow_on","rule":"r","for_ms":1}`, right, 400, "is not between"},
		{"an undo of nothing", `{"action":"undo","rule":"r"}`, right, 400, "number of one in the history"},
		{"a change of no undo", `{"action":"shadow_on","rule":"r","change":1}`, right, 400, "undo alone"},
		{"an undo of 0", `{"action":"undo","rule":"r","change":0}`, right, 400, "not the number"},
		{"an undo of another rule", `{"action":"undo","rule":"slices","change":1}`, right, 400, "not one of rule"},
		{"a long reason", `{"action":"shadow_on","rule":"r","why":"` + strings.Repeat("x", maxWhy+1) + `"}`, right, 400, "why has"},
		{"a window below the resolution", `{"action":"override","rule":"slices","window_ms":500}`, right, 400, "resolution"},
	} {
		if status, answer := post(page, test.body, test.headers...); status != test.status || !strings.Contains(answer, test.text) {
			t.Errorf("%s: %d %s", test.name, status, answer)
		}
	}
	if len(editor.edits) > 0 || len(page.history.view()) > 0 {
		t.Errorf("changed: %q", editor.edits)
	}
	if asked != 2 {
		t.Errorf("authorize was asked %d times, want twice, of the well-formed actions", asked)
	}
	editor.nothing = true
	if status, answer := post(page, `{"action":"unblock","rule":"r","key":"x"}`, right...); status != 409 || !strings.Contains(answer, "nothing to take back: the key is not blocked") {
		t.Errorf("unblock of what is not blocked: %d %s", status, answer)
	}
	editor.nothing = false
	editor.err = errors.New("somebody else has an end")
	if status, answer := post(page, good, right...); status != 409 || !strings.Contains(answer, "somebody else") {
		t.Errorf("a conflict: %d %s", status, answer)
	}
	// A browser says same-origin, a program nothing. Before a proxy that changes the Host
	// the origin is another one, and trusted.
	editor.err = nil
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "same-origin"}, {"Origin", "https://limits.example.com"}, {"Origin", "http://inside:8080", "Sec-Fetch-Site", "cross-site"},
	} {
		if status, answer := post(page, good, append(right, headers...)...); status != 200 {
			t.Errorf("%v: %d %s", headers, status, answer)
		}
	}
	for _, origin := range []string{"limits.example.com", "https://limits.example.com/ops", "", "https://"} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "write it as in https://limits.example.com") {
					t.Errorf("origin %q: %s", origin, said)
				}
			}()
			New(WithTrustedOrigins(origin))
		}()
	}
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
	page := New(WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, editor))
	editor.err = errors.New("broken")
	if w := ask(page, "GET", "/api/overrides", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "broken") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if v := decoded[overridesView](t, ask(New(), "GET", "/api/overrides", "")); len(v.Entries) != 0 || len(v.History) != 0 {
		t.Errorf("a page without an editor says %+v", v)
	}
}

// TestReadOnly wants a page without WithActions to change nothing, and one without
// an editor to reset keys alone.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	page := New(WithActions(nil, new(notebook)))
	newLimiter(t, page, &runtime.Rule{Name: "r", Max: 1, Window: time.Hour})
	if status, answer := post(page, `{"action":"reset","rule":"r","key":"x"}`); status != 403 || !strings.Contains(answer, "read-only") {
		t.Errorf("%d %s", status, answer)
	}
	if got := decoded[stateView](t, ask(page, "GET", "/api/state", "")).Actions; len(got) != 0 {
		t.Errorf("actions %q", got)
	}
	page = New(WithLogger(quiet), WithActions(func(*http.Request, Action) (string, error) { return "", nil }, nil))
	newLimiter(t, page, &runtime.Rule{Name: "r", Max: 1, Window: time.Hour})
	if status, answer := post(page, `{"action":"block","rule":"r","key":"x"}`); status != 400 || !strings.Contains(answer, "offers reset, release") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := post(page, `{"action":"reset","rule":"r","key":"x"}`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// TestOffers has a page with actions offer each viewer what the program says, and decide all the same.
func TestOffers(t *testing.T) {
	t.Parallel()
	page := New(
		WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, new(notebook)),
		WithOffers(func(r *http.Request, k Kind) bool { return k == Reset || r.Header.Get("Role") == "operator" }))
	offered := func(role string) []string {
		return decoded[stateView](t, ask(page, "GET", "/api/state", "", "Role", role)).Actions
	}
	if diff := cmp.Diff([]string{"reset"}, offered("viewer")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(page.actions.names(), offered("operator")); diff != "" {
		t.Error(diff)
	}
}
