// Package middleware measures what HTTP middleware costs a request: rategen's and
// httprate's, both in memory, around a handler that writes two bytes.
//
//	go test -bench . ./cost/middleware
package middleware

import (
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-chi/httprate"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// handlers returns a handler of each kind that admits max requests an hour for each
// client address.
func handlers(max int) map[string]http.Handler {
	rule := &runtime.Rule{Name: "bench", Window: time.Hour, Max: int64(max), Algorithm: runtime.SlidingCounter}
	limit := func(h http.Handler) http.Handler {
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		return ratehttp.RequestLimit{Limiter: limiter, Rule: rule}.Wrap(h)
	}
	return map[string]http.Handler{
		"none":                    ok,
		"ratehttp":                limit(ok),
		"ratehttp without fields": ratehttp.Middleware(ratehttp.WithoutFields())(limit(ok)),
		"httprate":                httprate.LimitBy(max, time.Hour, byPeer)(ok),
	}
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

// byPeer is the key that ratehttp has without another one.
func byPeer(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

// A sink is a writer that costs nothing itself.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

func BenchmarkMiddleware(b *testing.B) {
	for verdict, max := range map[string]int{"admitted": 1_000_000_000, "refused": 1} {
		all := handlers(max)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if name == "none" && verdict == "refused" {
				continue
			}
			b.Run(verdict+"/"+name, func(b *testing.B) {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				w := &sink{header: http.Header{}}
				all[name].ServeHTTP(w, r)
				all[name].ServeHTTP(w, r)
				if refused := w.status == http.StatusTooManyRequests; refused != (verdict == "refused") {
					b.Fatalf("status %d", w.status) // other work would be measured
				}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					all[name].ServeHTTP(w, r)
				}
			})
		}
	}
}
