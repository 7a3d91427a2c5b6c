package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// Calls that are still running when all they reserved has drained give nothing back: a
// caller who takes and refunds in turn then gets no more than the burst. On real clocks.
func TestLateRefund(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(),
		"redis":  runtime.NewRedisStore(redistest.Start(t).Client(t), patient, atOnce),
	} {
		for _, algorithm := range []runtime.Algorithm{runtime.TokenBucket, runtime.LeakyBucket} {
			t.Run(name+" "+algorithm.String(), func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				limiter := runtime.New(store, quiet, closed)
				rule := &runtime.Rule{Name: algorithm.String(), Window: 50 * time.Millisecond, Max: 100, Algorithm: algorithm}
				limit := rule.Limit(nil).WithCost(100)
				var open []runtime.Decision
				for range 10 {
					d := taken(t, limiter, limit)
					open = append(open, d)
					time.Sleep(2 * rule.Window)
				}
				admitted, start := int64(0), time.Now()
				for _, d := range open {
					for {
						if _, err := limiter.Take(ctx, rule.Limit(nil).WithCost(10)); err != nil {
							break
						}
						admitted += 10
					}
					refunded(t, limiter, d, limit)
				}
				if most := 100 + int64(time.Since(start)*100/rule.Window); admitted > most {
					t.Errorf("%d were admitted, want at most the burst and what drained, %d", admitted, most)
				}
			})
		}
	}
}

// A refund at once gives all back, and the next call finds a whole limit.
func TestRefundAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(),
		"redis":  runtime.NewRedisStore(redistest.Start(t).Client(t), patient, atOnce),
	} {
		limiter := runtime.New(store, quiet, closed)
		rule := &runtime.Rule{Name: "r", Window: 24 * time.Hour, Max: 1, Algorithm: runtime.TokenBucket}
		for range 20 {
			d, err := limiter.Take(ctx, rule.Limit(nil))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			refunded(t, limiter, d, rule.Limit(nil))
		}
	}
}
