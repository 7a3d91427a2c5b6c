package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// testRefundAfterTheCaller wants a refund to be made also when its caller's deadline has
// passed or it was cancelled.
func testRefundAfterTheCaller(t *testing.T, replica replicas) {
	limiter := replica()
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 20}).Limit(key("k"))
	for i := range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		d, err := limiter.Take(ctx, limit)
		ok(t, err)
		cancel()
		if i%2 == 0 {
			ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			defer cancel()
		}
		ok(t, limiter.Refund(ctx, d))
	}
	wantLeft(t, limiter, limit, 20)
}

// A refund keeps the values of its caller's context, and gets SettleTimeout on a
// store that does not end by itself.
func TestSettleTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type name struct{}
		store := newFake()
		var got any
		store.settle = func(ctx context.Context, _ []terms.Charge) error {
			got = ctx.Value(name{})
			<-ctx.Done()
			return ctx.Err()
		}
		limiter := runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
		d := taken(t, limiter, limit)
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), name{}, "value"), time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := limiter.Refund(ctx, d); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		equal(t, "took", time.Since(start), runtime.SettleTimeout)
		if got != "value" {
			t.Errorf("the store got the value %v", got)
		}
	})
}

// A decision that charged nothing is refunded to no effect, any number of times.
func TestRefundOfNothing(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	first := taken(t, limiter, rule.Limit(nil))
	denied, _ := limiter.Take(t.Context(), rule.Limit(nil))
	open, _ := runtime.New(new(brokenStore), quiet).Take(t.Context(), rule.Limit(nil))
	free, _ := limiter.Take(t.Context(), rule.Limit(nil).WithCost(0))
	for name, d := range map[string]runtime.Decision{"zero": {}, "denied": denied, "not decided": open, "at no cost": free} {
		for range 3 {
			if err := limiter.Refund(t.Context(), d); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Without a cost a decision is not used up.
	settled(t, limiter, first)
	settled(t, limiter, first, -1)
	refunded(t, limiter, first)
}
