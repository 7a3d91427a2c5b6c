package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// The failure policy decides about each message as about a call, also if the call began
// without the store, and when it is back it is charged.
func TestMeterWithoutStore(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		for policy, want := range map[runtime.FailurePolicy]struct {
			passed int64
			err    error
		}{runtime.FailOpen: {300, nil}, runtime.FailClosed: {0, runtime.ErrUnavailable}, runtime.FailLocal: {100, runtime.ErrLimited}} {
			synctest.Test(t, func(t *testing.T) {
				store := newFake()
				limiter, rule := runtime.New(store, quiet), perDay(100)
				rule.Fail = policy
				limit := rule.Limit(key("k"))
				store.broken.Store(!begun)
				if policy == runtime.FailClosed && !begun {
					refusedAs(t, limiter, runtime.ErrUnavailable, limit)
					return
				}
				m := metered(t, limiter, limit)
				if paid := begun || policy == runtime.FailLocal; (m.Advance(0) == 1) != paid {
					t.Errorf("begun %v, %v: %d in advance", begun, policy, m.Advance(0))
				}
				store.broken.Store(true)
				time.Sleep(2 * time.Second) // what was taken in advance is given back
				n, err := int64(0), error(nil)
				for ; n < 300; n++ {
					if err = m.Charge(1); err != nil {
						break
					}
					equal(t, "in advance without the store", m.Advance(0), 0)
				}
				if n != want.passed || !errors.Is(err, want.err) {
					t.Errorf("begun %v, %v: %d passed, then %v", begun, policy, n, err)
				}
				store.broken.Store(false)
				if policy == runtime.FailOpen {
					equal(t, fmt.Sprintf("begun %v: passed with the store again", begun), used(t, m, 0, 1), 100)
				}
				m.Close()
			})
		}
	}
}

// What this process alone has charged is given back, and settled, where it counts by itself.
func TestMeterCountsLocally(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake(runtime.WithReplicas(4))
		store.broken.Store(true)
		bucket := &runtime.Rule{Name: "bucket", Algorithm: runtime.TokenBucket, Window: time.Hour, Max: 400, Fail: runtime.FailLocal}
		d := taken(t, limiter, bucket.Limit(nil).WithCost(80))
		time.Sleep(30 * time.Minute)
		taken(t, limiter, bucket.Limit(nil).WithCost(50))
		time.Sleep(6 * time.Minute)
		limiter.Meter(t.Context(), d, 0).Close()
		for _, cost := range []int64{56, 1} { // 70 of its share are held, of which 26 are given back
			_, err := limiter.Take(t.Context(), bucket.Limit(nil).WithCost(cost))
			wantError(t, "a call more", err, map[int64]error{1: runtime.ErrLimited}[cost])
		}
		job := reserveRule(400)
		job.Fail = runtime.FailLocal
		m := limiter.Meter(t.Context(), taken(t, limiter, job.Limit(nil).WithCost(10)))
		wantError(t, "a message", m.Charge(99), runtime.ErrLimited)
		m.Close()
		equal(t, "settlements that the store has received", store.settles.Load(), 0)
		ok(t, limiter.Close())
	})
}

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
