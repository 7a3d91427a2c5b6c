package client_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/client"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/redis/go-redis/v9"
)

// newLimiter returns the limiter of a replica.
func newLimiter(client redis.UniversalClient) *runtime.Limiter {
	return runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(10*time.Second)),
		runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
}

// TestClient has replicas call an API that refuses a request. None of them calls it before
// the time that it has named, and all calls succeed.
func TestClient(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const after = 2 * time.Second
	var mu sync.Mutex
	var refused time.Time
	var early, served int
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refused.IsZero() {
			refused = time.Now()
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		} else if time.Since(refused) < after {
			early++
		} else {
			served++
		}
	}))
	t.Cleanup(api.Close)
	var replicas []*http.Client
	for range 4 {
		limiter := newLimiter(server.Client(t))
		t.Cleanup(func() { _ = limiter.Close() })
		replica, err := client.New(limiter, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(replica.CloseIdleConnections)
		replicas = append(replicas, replica)
	}
	call := func(c *http.Client) {
		response, err := c.Get(api.URL)
		if err != nil {
			t.Error(err)
			return
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("status %d", response.StatusCode)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { call(replicas[0]) }) // is refused, and tried again
	rule, key := &runtime.Rule{Name: "payments", Window: 10 * time.Second, Max: 100, Hold: true}, new(runtime.Key)
	rateclient.Credential(&http.Request{}, key)
	looks := newLimiter(server.Client(t))
	t.Cleanup(func() { _ = looks.Close() })
	limittest.Eventually(t, "the refusal holds back all", func() bool {
		d, err := looks.Peek(t.Context(), rule.Limit(key))
		mu.Lock()
		defer mu.Unlock()
		return err == nil && !d.Allowed || !refused.IsZero() && time.Since(refused) > after // which a busy machine has slept through
	})
	for _, replica := range replicas {
		for range 3 {
			wg.Go(func() { call(replica) })
		}
	}
	wg.Wait()
	if early != 0 || served != 13 {
		t.Errorf("%d calls came too early, and %d were served of 13", early, served)
	}
}
