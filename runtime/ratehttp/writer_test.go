package ratehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

var hourly = &runtime.Rule{Name: "hourly", Window: time.Hour, Max: 1000}

// take charges the hourly limit.
func take(t testing.TB, limiter *runtime.Limiter, r *http.Request) {
	if _, err := limiter.Take(r.Context(), hourly.Limit(nil)); err != nil {
		t.Error(err)
	}
}

// A copy that fails before its first byte has not begun the answer.
func TestReadFromFailsAtOnce(t *testing.T) {
	for name, broken := range map[string]error{
		"a refusal":     fmt.Errorf("reading: %w", &runtime.LimitedError{Rule: "reads"}),
		"another error": errors.New("broken"),
	} {
		var refundStatus int
		limit := ratehttp.RequestLimit{
			Limiter: runtime.New(runtime.NewMemoryStore()), Rule: hourly,
			Refund: func(status int) bool { refundStatus = status; return false },
		}
		h := limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, iotest.ErrReader(broken))
			if !ratehttp.Error(w, r, err) {
				http.Error(w, "bad gateway", http.StatusBadGateway)
			}
		}))
		want := http.StatusBadGateway
		if errors.Is(broken, runtime.ErrLimited) {
			want = http.StatusTooManyRequests
		}
		server := httptest.NewServer(h)
		resp, err := http.Get(server.URL)
		limittest.OK(t, err)
		resp.Body.Close()
		server.Close() // waits for the handler
		if resp.StatusCode != want || refundStatus != want {
			t.Errorf("%s: the client got %d and Refund %d, not %d", name, resp.StatusCode, refundStatus, want)
		}
	}
}

// A panic goes on its way, and a middleware that contains it finds the fields.
func TestHandlerPanics(t *testing.T) {
	limiter := newLimiter()
	recovers := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if value := recover(); value != http.ErrAbortHandler {
					t.Errorf("%v", value)
				}
				w.WriteHeader(http.StatusInternalServerError)
			}()
			next.ServeHTTP(w, r)
		})
	}
	resp := answerOf(recovers(ratehttp.Middleware()(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		take(t, limiter, r)
		panic(http.ErrAbortHandler)
	}))))
	if resp.StatusCode != 500 || len(parse(t, resp.Header, "RateLimit")) != 1 {
		t.Error(resp.StatusCode, resp.Header)
	}
}

// A client that has gone gets no answer, and nothing breaks.
func TestClientThatHasGone(t *testing.T) {
	limiter := newLimiter()
	served := make(chan error, 1)
	server := httptest.NewServer(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		_, err := limiter.Take(r.Context(), hourly.Limit(nil))
		ratehttp.Deny(w, r, err)
		served <- err
	})))
	defer server.Close()
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if _, err := server.Client().Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
