package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A call that can never be admitted waits for no permits, also where others wait
// for those of its key.
func TestLineOfNever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		limit := waitingRule(3, time.Minute).Limit(key("k"))
		never := (&runtime.Rule{Name: "never", Window: time.Minute}).Limit(nil)
		ask := func() {
			for _, limits := range [][]runtime.Limit{{limit.WithMax(0)}, {limit.WithCost(4)}, {limit, never}} {
				var d runtime.Decision
				var err error
				took := elapsed(func() { d, err = limiter.Take(t.Context(), limits...) })
				if took != 0 || !errors.Is(err, runtime.ErrLimited) || d.RetryAfter != runtime.Never {
					t.Errorf("got %+v, %v after %v", d, err, took)
				}
			}
		}
		ask()
		holding := taken(t, limiter, limit.WithCost(3))
		go func() { settled(t, limiter, taken(t, limiter, limit), limit) }()
		synctest.Wait()
		ask()
		settled(t, limiter, holding, limit.WithCost(3))
		synctest.Wait()
	})
}

// A permit comes back whatever has become of its limit meanwhile, and whatever is
// wrong with its key.
func TestPermitsOfOddLimits(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, limiter *runtime.Limiter, limit runtime.Limit, between func()) {
		t.Helper()
		d := taken(t, limiter, limit)
		between()
		settled(t, limiter, d, limit)
		if n := limiter.InFlight()["permits"]; n != 0 {
			t.Errorf("%d are held", n)
		}
	}
	t.Run("key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, store := range []runtime.Store{runtime.NewMemoryStore(), new(brokenStore)} {
				limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
				check(t, limiter, permitRule(3).Limit(runtime.NewKey().AddInvalid("none")), func() {})
			}
		})
	})
	for _, max := range []int64{-1, 0, 1, runtime.MaxLog + 1} {
		t.Run(fmt.Sprint("max ", max), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				five := runtime.Overrides{Rules: map[string]runtime.Override{"permits": {Max: new(int64(5))}}}
				var none atomic.Bool
				limiter := inMemory(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
					if none.Load() {
						return runtime.Overrides{}, nil
					}
					return five, nil
				}), time.Second))
				defer func() { _ = limiter.Close() }()
				synctest.Wait()
				check(t, limiter, permitRule(3).Limit(key("k")).WithMax(max).WithCost(2), func() {
					none.Store(true)
					time.Sleep(5 * time.Second)
				})
			})
		})
	}
}

// A charge under an invalid key, which the failure policy has let pass, is given
// back too.
func TestRefundOfInvalidKey(t *testing.T) {
	t.Parallel()
	limiter := inMemory(runtime.WithFailurePolicy(runtime.FailLocal))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(runtime.NewKey().AddInvalid("none"))
	for range 3 {
		d := taken(t, limiter, limit)
		refunded(t, limiter, d, limit)
	}
}

// A program that makes new rules all the time does not fill its memory with those
// that were in flight.
func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for i := range 12_000 {
		limit := (&runtime.Rule{Name: fmt.Sprint(i), Algorithm: runtime.Concurrency, Window: time.Minute, Max: 1}).Limit(nil)
		settled(t, limiter, taken(t, limiter, limit), limit)
	}
	if n := len(limiter.InFlight()); n > 10_001 {
		t.Errorf("%d names", n)
	}
}

// A lateContext has a deadline and no end.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A deadline that is over is no refusal, though the context has not said so yet.
func TestLineOfLateContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithDenied(func(_ context.Context, err error) error {
			t.Errorf("refused by %v", err)
			return err
		}))
		limit := waitingRule(1, time.Minute).Limit(nil)
		holding := taken(t, limiter, limit)
		ctx := lateContext{context.Background(), time.Now().Add(time.Second)}
		if _, err := limiter.Take(ctx, limit); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		settled(t, limiter, holding, limit)
	})
}
