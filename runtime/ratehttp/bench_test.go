package ratehttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// BenchmarkMiddleware is what a request costs that a limit admits, and one that it refuses: answered as a
// refusal by its handler, and as a failure.
func BenchmarkMiddleware(b *testing.B) {
	for name, c := range map[string]struct {
		max    int64
		answer func(http.ResponseWriter, *http.Request, error)
	}{
		"admitted": {1 << 50, nil},
		"refused":  {0, answers},
		"hidden":   {0, hides},
	} {
		b.Run(name, func(b *testing.B) {
			limiter, rule := newLimiter(), &runtime.Rule{Name: "r", Window: time.Hour, Max: c.max, Algorithm: runtime.FixedWindow}
			h := ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := limiter.Take(r.Context(), rule.Limit(nil)); err != nil {
					c.answer(w, r, err)
					return
				}
				w.WriteHeader(http.StatusNoContent)
			}))
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
