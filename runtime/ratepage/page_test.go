package ratepage

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	engine "github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

type ctx = context.Context

var quiet = slog.New(slog.DiscardHandler)

// newLimiter returns a limiter in memory with the page's observer.
func newLimiter(t *testing.T, p *Page, rules ...*runtime.Rule) *runtime.Limiter {
	t.Helper()
	l := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet), runtime.WithObserver(p.Observer()))
	t.Cleanup(func() { _ = l.Close() })
	l.Register(rules...)
	return l
}

// ask sends a request to a handler.
func ask(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// decoded returns an answer's JSON.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return v
}

// TestPaths mounts a page in the ways that users do, and asks for all it has.
func TestPaths(t *testing.T) {
	t.Parallel()
	page := New()
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", page))
	mux.Handle("/a/b/c/", http.StripPrefix("/a/b/c/", page))
	mux.Handle("/whole/", page) // a mistake
	mux.Handle("/bare", http.StripPrefix("/bare", page))
	for target, want := range map[string]struct {
		status int
		kind   string
		body   string
	}{
		"/limits/":               {200, "text/html; charset=utf-8", `src="page.js"`},
		"/limits/page.js":        {200, "text/javascript; charset=utf-8", `from "./dom.js"`},
		"/limits/base.css":       {200, "text/css; charset=utf-8", "prefers-color-scheme"},
		"/limits/icon.svg":       {200, "image/svg+xml", "<svg"},
		"/limits/api/listing":    {200, "application/jsonl; charset=utf-8", ""}, // no rule, no line
		"/limits/api/rules":      {200, "application/json; charset=utf-8", `"rules":`},
		"/limits/api/state":      {200, "application/json; charset=utf-8", `"totals":`},
		"/a/b/c/":                {200, "text/html; charset=utf-8", `src="page.js"`},
		"/a/b/c/dom.js":          {200, "text/javascript; charset=utf-8", "export"},
		"/whole/":                {404, "application/json; charset=utf-8", "http.StripPrefix"},
		"/whole/page.js":         {404, "application/json; charset=utf-8", "http.StripPrefix"},
		"/limits/index.html":     {404, "application/json; charset=utf-8", "no path"},
		"/limits/assets/page.js": {404, "application/json; charset=utf-8", "no path"},
		"/limits/api/actions":    {405, "application/json; charset=utf-8", "is for POST"},
		"/bare":                  {307, "", ""},
	} {
		w := ask(mux, "GET", target, "")
		if w.Code != want.status || w.Header().Get("Content-Type") != want.kind || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: %d %s %.300s", target, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
			"X-Content-Type-Options":  "nosniff",
			"Cache-Control":           "no-store",
			"Referrer-Policy":         "same-origin",
		} {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q", target, name, got)
			}
		}
		if strings.Contains(want.kind, "html") {
			for _, inline := range []string{"<script>", "<style", " style=", " onclick", " src=\"/", " href=\"/"} {
				if strings.Contains(w.Body.String(), inline) {
					t.Errorf("%s has %q", target, inline)
				}
			}
		}
	}
	for target, want := range map[string]string{"/bare": "./bare/", "//evil.example/bare": "", "/a%3Fb/bare": ""} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/x", nil)
		r.RequestURI, r.URL.Path = target, ""
		page.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != 307 || !strings.HasPrefix(got, "./") || want != "" && got != want {
			t.Errorf("%s: %d to %q", target, w.Code, got)
		}
	}
}

// TestMethods wants no GET to change anything, and nothing but a POST to be an
// action.
func TestMethods(t *testing.T) {
	t.Parallel()
	page := New(WithActions(func(*http.Request, Action) (string, error) { return "", nil }, nil))
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if w := ask(page, method, "/api/actions?action=reset&rule=a&key=b", ""); w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s api/actions: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/page.js", "/api/rules", "/api/state", "/api/keys", "/api/stream"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "G", ""} {
			r := httptest.NewRequest("GET", path, nil)
			r.Method = method
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			if w.Code != 405 {
				t.Errorf("%q %s: %d", method, path, w.Code)
			}
		}
	}
	if w := ask(page, "HEAD", "/api/rules", ""); w.Code != 200 {
		t.Errorf("HEAD: %d", w.Code)
	}
}

// TestRules reads what the page says of rules: as declared, overridden, scaled,
// and with a max of each call.
func TestRules(t *testing.T) {
	t.Parallel()
	page := New()
	most := int64(3)
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()),
		runtime.WithOverrides(runtime.OverrideFunc(func(ctx ctx) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]rule.Override{
				"changed": {Max: &most, Keys: map[string]rule.KeyOverride{"x": {Max: &most}}},
				"off":     {Enabled: new(false)},
				"trial":   {Mode: new(runtime.ModeShadow)},
				"nobody":  {Max: new(int64(0))},
			}}, nil
		}), time.Hour))
	t.Cleanup(func() { _ = limiter.Close() })
	limiter.Register(
		&runtime.Rule{Name: "plain", Source: "a.go: A.B", Max: 5, Window: time.Minute},
		&runtime.Rule{Name: "changed", Max: 5, Window: time.Minute},
		&runtime.Rule{Name: "off", Max: 5, Window: time.Minute},
		&runtime.Rule{Name: "trial", Window: time.Minute},
		&runtime.Rule{Name: "nobody", Window: time.Minute},
		&runtime.Rule{Name: "bycall", Window: time.Minute, Algorithm: runtime.TokenBucket, Burst: 9},
	)
	rules := make(map[string]ruleView)
	for _, r := range decoded[rulesView](t, ask(page, "GET", "/api/rules", "")).Rules {
		rules[r.Name] = r
	}
	for name, want := range map[string]ruleView{
		"plain":   {Source: "a.go: A.B", Enabled: true, Max: 5, Origin: "directive"},
		"changed": {Enabled: true, Max: 3, Origin: "override", Overridden: true, Keys: 1},
		"off":     {Max: 5, Origin: "override", Overridden: true},
		"trial":   {Enabled: true, Mode: "shadow", Origin: "call", Overridden: true},
		"nobody":  {Enabled: true, Origin: "override", Overridden: true},
		"bycall":  {Enabled: true, Algorithm: "token-bucket", Burst: 9, Origin: "call"},
	} {
		want.Name, want.Fail, want.WindowMS, want.Factor = name, "default", 60000, 1
		want.Mode = cmp.Or(want.Mode, "enforce")
		if want.Algorithm == "" {
			want.Algorithm = "sliding-log"
		}
		want.Declared = terms{5, 60000, "enforce"}
		if name == "bycall" || name == "trial" || name == "nobody" {
			want.Declared.Max = 0
		}
		if rules[name] != want {
			t.Errorf("got  %+v\nwant %+v", rules[name], want)
		}
	}
}

// TestLookUp looks keys up, and wants nothing to be charged for that.
func TestLookUp(t *testing.T) {
	t.Parallel()
	page := New()
	r := &runtime.Rule{Name: "orders.Create", Max: 2, Window: time.Hour, Block: time.Hour}
	twin := &runtime.Rule{Name: "orders.Create", Source: "twin", Prefix: "t:", Max: 7, Window: time.Hour}
	bycall := &runtime.Rule{Name: "bycall", Window: time.Hour}
	peer := &runtime.Rule{Name: "peer", Max: 2, Window: time.Hour, Hold: true}
	year := &runtime.Rule{Name: "year", Max: 9, Period: rule.Year, Algorithm: runtime.FixedWindow}
	limiter := newLimiter(t, page, r, bycall, peer, year)
	newLimiter(t, page, twin)
	key := runtime.NewKey().AddString("a:b").AddString("*é")
	look := func(query string) keyView { return decoded[keyView](t, ask(page, "GET", "/api/keys?"+query, "")) }
	const query = "rule=orders.Create&key=a%253Ab:*%C3%A9"
	for range 5 {
		if v := look(query); v.Key != "a%3Ab:*é" || *v.Limits[0].Remaining != 2 || *v.Limits[1].Limit != 7 {
			t.Fatalf("before a call: %+v", v)
		}
	}
	for range 3 {
		_, _ = limiter.Take(t.Context(), r.Limit(key))
	}
	if got := look(query).Limits[0]; got.State.State != operate.Blocked || *got.Limit != 2 || got.RetryMS == nil || *got.RetryMS < 3.5e6 {
		t.Errorf("a blocked key: %+v", got)
	}
	_, _ = limiter.Take(t.Context(), year.Limit(key).WithCost(4))
	for _, key := range []string{"a%253Ab:*%C3%A9", "other"} {
		used := int64(4)
		if key == "other" {
			used = 0
		}
		if got := look("rule=year&key=" + key).Limits[0]; got.Used != used || *got.Remaining != 9-used || got.Window != "year" || got.ResetMS <= 0 || got.ResetMS > 366*24*3600*1000 {
			t.Errorf("a year of %s: %+v", key, got)
		}
	}
	limittest.OK(t, limiter.Hold(t.Context(), peer.Limit(nil), time.Minute))
	if got := look("rule=peer&key=").Limits[0]; got.State.State != operate.Held || got.RetryMS == nil || *got.RetryMS > 60_000 || *got.RetryMS < 30_000 {
		t.Errorf("a key that is held back: %+v", got)
	}
	if got := look("rule=bycall&key=x&max=9").Limits[0]; got.State.State != operate.OK || *got.Remaining != 9 {
		t.Errorf("a max of the call: %+v", got)
	}
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"rule=nobody&key=x":                                   {404, `no rule has the name \"nobody\"`},
		"key=x":                                               {200, `"others":5`},
		"rule=orders.Create&key=a%25zz":                       {400, "% without two"},
		"rule=orders.Create&key=%7Bx%7D":                      {400, "no key has the byte"},
		"rule=orders.Create&keys=x":                           {400, "unknown parameter"},
		"rule=bycall&key=x":                                   {400, "max of its own"},
		"rule=bycall&key=x&max=0":                             {400, "max of its own"},
		"rule=bycall&key=x&max=9999999999":                    {400, "above 1000000"},
		"rule=orders.Create&key=" + strings.Repeat("x", 5000): {400, "most is 4096"},
	} {
		if w := ask(page, "GET", "/api/keys?"+query, ""); w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%.60s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestStoreAway wants a clear answer while the store is away, and the page to go
// on.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	page := New(WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, nil), WithLogger(quiet))
	limiter := runtime.New(rawstore.New(downStore{}, nil), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
	rule := &runtime.Rule{Name: "r", Max: 5, Window: time.Minute}
	limiter.Register(rule)
	if w := ask(page, "GET", "/api/keys?rule=r&key=x", ""); w.Code != 503 || !strings.Contains(w.Body.String(), `"rate limit store unavailable: connection"`) {
		t.Errorf("look-up: %d %s", w.Code, w.Body)
	}
	if w := ask(page, "POST", "/api/actions", `{"action":"reset","rule":"r","key":"x"}`, "Content-Type", "application/json"); w.Code != 503 {
		t.Errorf("reset: %d %s", w.Code, w.Body)
	}
	for range 3 {
		_, _ = limiter.Take(t.Context(), rule.Limit(nil))
	}
	state := decoded[stateView](t, ask(page, "GET", "/api/state", ""))
	if want := `{"share":null,"kinds":[{"class":"connection","policy":"open","count":0}]}`; string(state.Undecided) != want {
		t.Errorf("before anybody has looked for a second: %s, want %s", state.Undecided, want)
	}
	if state.Totals != [columns]uint64{undecided: 3} {
		t.Errorf("totals %v", state.Totals)
	}
	var redis redisView
	if err := json.Unmarshal(state.Redis, &redis); err != nil || len(redis.Failures) != 1 || redis.Failures[0].Count != 3 || redis.Failures[0].Class != "connection" {
		t.Errorf("failures %+v, %v", redis.Failures, err)
	}
}

// A downStore is a store that is away.
type downStore struct{ engine.Store }

func (downStore) Take(ctx, []engine.Call) error    { return io.ErrUnexpectedEOF }
func (downStore) Peek(ctx, []engine.Call) error    { return io.ErrUnexpectedEOF }
func (downStore) Reset(ctx, []engine.Charge) error { return io.ErrUnexpectedEOF }

// TestClosedLimiters wants a page to let limiters go that are closed.
func TestClosedLimiters(t *testing.T) {
	t.Parallel()
	const limiters = 50
	page := New()
	var gone atomic.Int64
	for range limiters {
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
		l.Register(&runtime.Rule{Name: "r", Max: 1, Window: time.Hour})
		goruntime.AddCleanup(l, func(int) { gone.Add(1) }, 0)
		limittest.OK(t, l.Close())
	}
	if got := decoded[rulesView](t, ask(page, "GET", "/api/rules", "")).Rules; len(got) != 0 {
		t.Errorf("%d rules", len(got))
	}
	for start := time.Now(); gone.Load() < limiters; {
		goruntime.GC()
		if time.Since(start) > time.Minute {
			t.Fatalf("%d of %d limiters are gone", gone.Load(), limiters)
		}
	}
	goruntime.KeepAlive(page)
}

// TestBrokenQuery wants a key that cannot be read to be an error: it would be as if it
// had been left out.
func TestBrokenQuery(t *testing.T) {
	t.Parallel()
	page := New()
	newLimiter(t, page, &runtime.Rule{Name: "r", Max: 1, Window: time.Hour})
	for _, query := range []string{"rule=r&key=a%zz", "rule=r&key=%", "rule=r;key=a"} {
		if w := ask(page, "GET", "/api/keys?"+query, ""); w.Code != 400 || !strings.Contains(w.Body.String(), "address of the request is wrong") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
