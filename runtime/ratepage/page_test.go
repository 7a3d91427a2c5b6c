package ratepage

import (
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

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	engine "github.com/rategen/rategen/runtime/internal/terms"
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
