package ratepage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

// A notebook is an editor that notes what it is asked for.
type notebook struct {
	edits []string
	err   error
}

func (n *notebook) Edit(_ ctx, rule string, pattern *string, change *runtime.KeyOverride) error {
	text := rule
	if pattern != nil {
		text += fmt.Sprintf(" key %q", *pattern)
	}
	if change == nil {
		text += " removed"
	} else {
		as, _ := json.Marshal(change)
		text += " " + string(as)
	}
	n.edits = append(n.edits, text)
	return n.err
}

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
	limiter := newLimiter(t, page, rule)
	key := runtime.NewKey().AddString("a:b*")
	for range 2 {
		_, _ = limiter.Take(t.Context(), rule.Limit(key))
	}
	for _, body := range []string{
		`{"action":"reset","rule":"r","key":"a%3Ab*"}`,
		`{"action":"override","rule":"r","max":7,"window_ms":1500}`,
		`{"action":"override","rule":"r","max":0}`,
		`{"action":"block","rule":"r","key":"a%3Ab*"}`,
		`{"action":"unblock","rule":"r","key":""}`,
		`{"action":"shadow_on","rule":"r"}`,
		`{"action":"shadow_off","rule":"r"}`,
		`{"action":"restore","rule":"r"}`,
	} {
		if status, answer := post(page, body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if _, err := limiter.Take(t.Context(), rule.Limit(key)); err != nil {
		t.Errorf("after its reset: %v", err)
	}
	want := []string{
		`r {"Enabled":null,"Max":7,"Window":1500000000,"Mode":null}`,
		`r {"Enabled":null,"Max":0,"Window":null,"Mode":null}`,
		`r key "a%3Ab%2A" {"Enabled":true,"Max":0,"Window":null,"Mode":0}`,
		`r key "" removed`,
		`r {"Enabled":null,"Max":null,"Window":null,"Mode":1}`,
		`r {"Enabled":null,"Max":null,"Window":null,"Mode":0}`,
		`r removed`,
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
	if len(history) != 8 || history[7].Note != "a key was reset" || history[7].By != "ada" || history[6].Note != "overridden: max 7, window 1.5s" {
		t.Errorf("history %+v", history)
	}
}

// TestRefusedActions wants a clear answer to everything that must not change
// anything, and nothing changed.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	var editor notebook
	asked := 0
	page := New(WithLogger(quiet), WithActions(func(r *http.Request, a Action) (string, error) {
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
		{"another origin", good, append(right, "Origin", "https://evil.example"), 403, "cross-origin"},
		{"a form", "action=reset", append(right, "Content-Type", "application/x-www-form-urlencoded"), 415, "application/json"},
		{"text", good, append(right, "Content-Type", "text/plain"), 415, "application/json"},
		{"no JSON", "{", right, 400, "body of the action"},
		{"bytes that are no text", `{"action":"reset","rule":"r","key":"caf` + "\xff" + `"}`, right, 400, "%XX"},
		{"two values", good + good, right, 400, "something follows"},
		{"an unknown field", `{"action":"reset","rule":"r","key":"x","force":true}`, right, 400, "unknown field"},
		{"a long body", `{"rule":"` + strings.Repeat("x", maxBody) + `"}`, right, 400, "too large"},
		{"an unknown action", `{"action":"drop","rule":"r"}`, right, 400, "the page offers reset, override"},
		{"an unknown rule", `{"action":"shadow_on","rule":"nobody"}`, right, 404, "no rule"},
		{"no key", `{"action":"block","rule":"r"}`, right, 400, "needs a key"},
		{"a key too many", `{"action":"shadow_on","rule":"r","key":"x"}`, right, 400, "has no key"},
		{"a bad key", `{"action":"block","rule":"r","key":"{x}"}`, right, 400, "no key has the byte"},
		{"no numbers", `{"action":"override","rule":"r"}`, right, 400, "needs max or window_ms"},
		{"numbers too many", `{"action":"restore","rule":"r","max":1}`, right, 400, "has neither"},
		{"a negative max", `{"action":"override","rule":"r","max":-1}`, right, 400, "max -1"},
		{"a fraction", `{"action":"override","rule":"r","max":1.5}`, right, 400, "1.5"},
		{"a max for no log", `{"action":"override","rule":"r","max":1000001}`, right, 400, "1000000"},
		{"a long window", `{"action":"override","rule":"r","window_ms":1e300}`, right, 400, "is not between"},
		{"a short window", `{"action":"override","rule":"r","window_ms":0.5}`, right, 400, "is not between"},
		{"a window below the resolution", `{"action":"override","rule":"slices","window_ms":500}`, right, 400, "resolution"},
	} {
		if status, answer := post(page, test.body, test.headers...); status != test.status || !strings.Contains(answer, test.text) {
			t.Errorf("%s: %d %s", test.name, status, answer)
		}
	}
	if len(editor.edits) > 0 || len(page.history.view()) > 0 {
		t.Errorf("changed: %q", editor.edits)
	}
	if asked != 1 {
		t.Errorf("authorize was asked %d times, want once, of the well-formed action", asked)
	}
	editor.err = errors.New("somebody else has an end")
	if status, answer := post(page, good, right...); status != 409 || !strings.Contains(answer, "somebody else") {
		t.Errorf("a conflict: %d %s", status, answer)
	}
	// A browser says same-origin, a program nothing.
	editor.err = nil
	if status, answer := post(page, good, append(right, "Sec-Fetch-Site", "same-origin")...); status != 200 {
		t.Errorf("same origin: %d %s", status, answer)
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
	if status, answer := post(page, `{"action":"block","rule":"r","key":"x"}`); status != 400 || !strings.Contains(answer, "offers reset") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := post(page, `{"action":"reset","rule":"r","key":"x"}`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}
