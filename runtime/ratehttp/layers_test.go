package ratehttp_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// A handler whose time is over goes on beside the middleware, which answers for it.
func TestMiddlewareAroundTimeout(t *testing.T) {
	for _, opts := range [][]ratehttp.Option{nil, {ratehttp.WithForcedRefusals(), ratehttp.WithLegacyFields(), ratehttp.WithCORS()}} {
		limiter, handlers := newLimiter(), sync.WaitGroup{}
		h := ratehttp.Middleware(opts...)(http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer handlers.Done()
			_, err := limiter.Take(r.Context(), nobody.Limit(nil))
			if r.URL.Path == "/over" {
				<-r.Context().Done()
			}
			if !ratehttp.Error(w, r, err) {
				t.Error(err)
			}
		}), 10*time.Millisecond, "late"))
		for _, path := range []string{"/", "/over"} {
			for range 30 {
				handlers.Add(1)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != 429 && w.Code != 503 || path == "/over" && w.Code != 503 {
					t.Errorf("%s: %d", path, w.Code)
				}
			}
		}
		handlers.Wait()
	}
}
