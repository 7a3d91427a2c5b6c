package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A trip that need not wait goes on when its call has ended, so that what it takes is known.
func TestMeterOutlivesItsCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake()
		rule := *wide
		rule.Wait = time.Second
		ctx, cancel := context.WithCancel(context.Background())
		m := limiter.Meter(ctx, taken(t, limiter, rule.Limit(nil)), 0)
		ok(t, m.Charge(6))
		store.take = func(ctx context.Context, calls []terms.Call) error {
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return store.engine.Take(ctx, calls)
		}
		ok(t, m.Charge(5))
		between(t, "taken in advance", m.Advance(0), 1, 40)
		m.Close()
		ok(t, limiter.Close())
		store.take = nil
		wantLeft(t, limiter, rule.Limit(nil), 1_000_000-11)
	})
}

// On a store that bounds nothing a message waits for as long as its call does, and for a second
// more, in which the store may tell what it has taken.
func TestMeterOnSlowStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake()
		ctx, cancel := context.WithCancel(context.Background())
		m := limiter.Meter(ctx, taken(t, limiter, wide.Limit(nil)), 0)
		wait := 3 * time.Second
		store.take = func(ctx context.Context, calls []terms.Call) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
				return store.engine.Take(ctx, calls)
			}
		}
		ok(t, m.Charge(2))
		wait = time.Hour
		time.AfterFunc(2*time.Second, cancel)
		equal(t, "time until the call has ended", elapsed(func() { wantError(t, "the last message", m.Charge(100), context.Canceled) }), 3*time.Second)
		wait = 0
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			time.Sleep(time.Second / 2)
			return store.engine.Settle(ctx, charges)
		}
		charged := limiter.Meter(context.Background(), taken(t, limiter, wide.Limit(nil).WithCost(5)))
		equal(t, "time until a meter is closed", elapsed(func() { m.Close(); charged.Close(3) }), 0)
		time.Sleep(time.Second)
		wantLeft(t, limiter, wide.Limit(nil), 1_000_000-2-3)
		ok(t, limiter.Close())
	})
}
