package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/client"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A provider refuses its first call for a time, and notes those that come too early.
type provider struct {
	mu            sync.Mutex
	refused       time.Time
	after         time.Duration
	early, served int
}

func (p *provider) Complete(context.Context, string, int) (string, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		p.refused = time.Now()
		return "", -1, &client.ProviderError{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {fmt.Sprint(p.after.Seconds())}}}
	}
	if time.Since(p.refused) < p.after {
		p.early++
	}
	p.served++
	return "", 100, nil
}

// TestModelRefusesAtOnce has a provider refuse a replica, and wants another one not to wait for
// the time that it has named if its call has not so much.
func TestModelRefusesAtOnce(t *testing.T) {
	t.Parallel()
	redis, p := redistest.Start(t), &provider{after: 4 * time.Minute}
	var refusal *client.ProviderError
	var limited *runtime.LimitedError
	for i, want := range []any{&refusal, &limited} {
		limiter := newLimiter(redis.Client(t))
		t.Cleanup(func() { _ = limiter.Close() })
		hurried, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := client.NewRateLimitedModel(p, limiter).Complete(hurried, "", 1000); !errors.As(err, want) {
			t.Fatalf("replica %d: %v", i, err)
		}
	}
	if !limited.Blocked || limited.RetryAfter > p.after || limited.RetryAfter < p.after/2 {
		t.Errorf("%+v", limited)
	}
}

// TestModel has replicas call a provider that refuses one of them. The others wait until
// the time that it has named. All then go on, and are charged the tokens that they used.
func TestModel(t *testing.T) {
	t.Parallel()
	redis, ctx := redistest.Start(t), t.Context()
	p := &provider{after: 2 * time.Second}
	var replicas []client.Model
	var limiters []*runtime.Limiter
	for range 4 {
		limiter := newLimiter(redis.Client(t))
		t.Cleanup(func() { _ = limiter.Close() })
		limiters = append(limiters, limiter)
		replicas = append(replicas, client.NewRateLimitedModel(p, limiter))
	}
	var refusal *client.ProviderError
	if _, _, err := replicas[0].Complete(ctx, "", 1000); !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, replica := range replicas {
		for range 5 {
			wg.Go(func() {
				if _, _, err := replica.Complete(ctx, "", 4000); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if p.early != 0 || p.served != 20 {
		t.Errorf("%d calls came too early, and %d were served of 20", p.early, p.served)
	}
	for _, limiter := range limiters {
		if err := limiter.Close(); err != nil { // settles
			t.Error(err)
		}
	}
	// What had not come back would be as new in 54 seconds.
	hurried, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	limiter := newLimiter(redis.Client(t))
	t.Cleanup(func() { _ = limiter.Close() })
	if _, _, err := client.NewRateLimitedModel(p, limiter).Complete(hurried, "", 90_000-1000-20*100); err != nil {
		t.Errorf("the tokens that were reserved and not used: %v", err)
	}
}
