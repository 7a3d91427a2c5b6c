package ratehttp_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// answerOf has a handler answer one GET of one client.
func answerOf(h http.Handler, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// taking is a handler that charges limits and answers refusals.
func taking(limiter *runtime.Limiter, limits ...runtime.Limit) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := limiter.Take(r.Context(), limits...); err != nil {
			ratehttp.Error(w, r, err)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
}

// from sets the peer of a request, and what it asks for.
func from(peer, query string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr, r.URL.RawQuery = peer, query }
}
