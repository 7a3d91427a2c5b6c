package partner

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestPartner has two replicas use up a quota, which the partner says is 100 and not 10,000:
// calls in the background stop at 80. When the partner says that none is left nobody calls
// it for the rest of its day, and each call says until when.
func TestPartner(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	calls, spent := 0, false // guarded by there being one call at a time
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("RateLimit-Policy", `"day";q=100;w=86400`)
		if spent {
			w.Header().Set("Retry-After", "36000")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(api.Close)
	var replicas []*http.Client
	// The limit of a second is not what is tested.
	overrides := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		most := int64(1000)
		return runtime.Overrides{Rules: map[string]rule.Override{"partner.second": {Max: &most}}}, nil
	})
	for range 2 {
		limiter := runtime.New(runtime.NewRedisStore(redis.Client(t), runtime.WithTimeout(10*time.Second)),
			runtime.WithOverrides(overrides, time.Hour), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		t.Cleanup(func() { _ = limiter.Close() })
		replica, err := New(limiter, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(replica.CloseIdleConnections)
		replicas = append(replicas, replica)
	}
	call := func(ctx context.Context, i int) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := replicas[i%2].Do(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	until := func(ctx context.Context) (n int) {
		t.Helper()
		for ; n < 200; n++ {
			_, err := call(ctx, n)
			var limited *runtime.LimitedError
			if errors.As(err, &limited) {
				if limited.Rule != "partner.day" || limited.RetryAfter < 20*time.Hour {
					t.Errorf("refused by %s, for %v", limited.Rule, limited.RetryAfter)
				}
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if n := until(Background(t.Context())); n != 80 {
		t.Errorf("%d calls in the background were sent, want 80", n)
	}
	for i := range 10 {
		if status, err := call(t.Context(), i); status != http.StatusOK || err != nil {
			t.Fatalf("a call that somebody waits for: %d, %v", status, err)
		}
	}
	if n := until(Background(t.Context())); n != 0 {
		t.Errorf("%d more calls in the background were sent", n)
	}
	spent = true
	if status, err := call(t.Context(), 0); status != http.StatusTooManyRequests || err != nil {
		t.Fatal(status, err)
	}
	for i := range 2 {
		var limited *runtime.LimitedError
		if _, err := call(t.Context(), i); !errors.As(err, &limited) || limited.RetryAfter < 9*time.Hour || limited.RetryAfter > 10*time.Hour {
			t.Errorf("replica %d, when nothing is left: %v", i, err)
		}
	}
	if calls != 91 {
		t.Errorf("the partner saw %d calls, want 91", calls)
	}
}
