// Package middleware measures what HTTP middleware costs a request: rategen's and
// httprate's, both in memory, around a handler that writes two bytes.
//
//	go test -bench . ./cost/middleware
package middleware

import (
	"log/slog"
	"net"
	"net/http"
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
