package ratehttp_test

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

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

// recovering is middleware that answers a panic with 500.
func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				http.Error(w, "broken", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// gzipWriter compresses what is written, as many middlewares do.
type gzipWriter struct {
	http.ResponseWriter
	to *gzip.Writer
}

func (g gzipWriter) Write(p []byte) (int, error) { return g.to.Write(p) }

func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		to := gzip.NewWriter(w)
		next.ServeHTTP(gzipWriter{w, to}, r)
		_ = to.Close()
	})
}

// A wrapper passes a nil request on, as it passes on whatever it gets.
func TestDenyWithoutRequest(t *testing.T) {
	w := httptest.NewRecorder()
	ratehttp.Deny(w, nil, &runtime.LimitedError{Rule: "x", RetryAfter: time.Second})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Error(w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	if !ratehttp.Error(w, nil, runtime.ErrUnavailable) || w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code, w.Header())
	}
}

// A delegate has a flush that fails as that of the writer below does, or panics as in echo.
type delegate struct {
	http.ResponseWriter
	panics bool
}

func (d delegate) FlushError() error {
	err := http.NewResponseController(d.ResponseWriter).Flush()
	if err != nil && d.panics {
		panic(err)
	}
	return err
}

func delegating(next http.Handler, panics bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(delegate{w, panics}, r) })
}
