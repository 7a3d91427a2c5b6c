package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// waitingRule returns a rule of so many permits that a call may wait for.
func waitingRule(max int64, wait time.Duration) *runtime.Rule {
	rule := permitRule(max)
	rule.Wait = wait
	return rule
}

// Calls that wait get their permits in the order of their arrival, each at the
// moment at which one of the process comes back, and ask the store seldom.
func TestLine(t *testing.T) {
	t.Parallel()
	for _, max := range []int64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			store := newFake()
			limiter := runtime.New(store, quiet)
			limit := waitingRule(max, time.Minute).Limit(key("k"))
			const callers, hold = 60, 7 * time.Millisecond
			var mu sync.Mutex
			var order []int
			begin := time.Now()
			var wait sync.WaitGroup
			for i := range callers {
				wait.Go(func() {
					d := taken(t, limiter, limit)
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					time.Sleep(hold)
					settled(t, limiter, d)
				})
				synctest.Wait()
			}
			wait.Wait()
			for i, caller := range order { // those of one moment in any order
				if d := int64(caller - i); d <= -max || d >= max {
					t.Errorf("max %d: admitted in the order %v", max, order)
					break
				}
			}
			if took, want := time.Since(begin), callers/time.Duration(max)*hold; took != want {
				t.Errorf("max %d: took %v, want %v", max, took, want)
			}
			// A call asks when it arrives or when a permit comes back, and once
			// more than it finds room. In between it is asked after 5 ms or so.
			if takes := store.takes.Load(); takes > 5*callers {
				t.Errorf("max %d: asked %d times for %d calls", max, takes, callers)
			}
		})
	}
}

// Permits that another process returns are found soon.
func TestLineOfOtherProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		here, there := runtime.New(store, quiet), runtime.New(store, quiet)
		limit := waitingRule(1, time.Minute).Limit(key("k"))
		for _, hold := range []time.Duration{time.Microsecond, time.Millisecond, 100 * time.Millisecond, time.Second, 59 * time.Second} {
			d := taken(t, there, limit)
			time.AfterFunc(hold, func() { _ = there.Settle(context.Background(), d) })
			var mine runtime.Decision
			took := elapsed(func() { mine = taken(t, here, limit) })
			if took < hold || took > hold+65*time.Millisecond {
				t.Errorf("held for %v: waited %v", hold, took)
			}
			settled(t, here, mine)
		}
	})
}

// A call waits no longer than its rule and its context let it, and is denied by
// what the store says then.
func TestLineEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		limit := waitingRule(1, 300*time.Millisecond).Limit(nil)
		holding := taken(t, limiter, limit)
		for range 3 { // the second and third wait behind others
			go func() {
				var limited *runtime.LimitedError
				var err error
				took := elapsed(func() { _, err = limiter.Take(context.Background(), limit) })
				if took != 300*time.Millisecond || !errors.As(err, &limited) || limited.RetryAfter <= 0 || limited.Limit != 1 {
					t.Errorf("after %v: %v", took, err)
				}
			}()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if took := elapsed(func() {
			if _, err := limiter.Take(ctx, limit); err != context.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
		}); took != 200*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		time.Sleep(time.Second)
		// Nobody is left in the line: a call asks at once.
		equal(t, "lines and calls in them are left", limiter.Lines(), 0)
		settled(t, limiter, holding)
		equal(t, "waited", elapsed(func() { holding = taken(t, limiter, limit) }), 0)
	})
}

// Who may use more of the limit does not wait behind those who may use less of it.
func TestLineOfPriorities(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		limit := waitingRule(10, time.Minute).Limit(nil)
		low := limit.WithMax(8)
		eight := taken(t, limiter, low.WithCost(8))
		var done atomic.Int32
		for range 3 {
			go func() {
				d := taken(t, limiter, low)
				done.Add(1)
				settled(t, limiter, d)
			}()
		}
		synctest.Wait()
		if took := elapsed(func() { taken(t, limiter, limit); taken(t, limiter, limit) }); took != 0 || done.Load() != 0 {
			t.Errorf("waited %v, and %d of low priority were admitted", took, done.Load())
		}
		settled(t, limiter, eight)
		synctest.Wait()
		if done.Load() != 3 {
			t.Errorf("%d of low priority were admitted when there was room", done.Load())
		}
	})
}

// A call that waits for a rate holds up nobody who waits for permits.
func TestLineBesideRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		permit := waitingRule(1, time.Minute).Limit(nil)
		rate := (&runtime.Rule{Name: "rate", Window: 20 * time.Second, Max: 1, Wait: time.Minute}).Limit(nil)
		holding := taken(t, limiter, rate, permit)
		var first, second time.Duration
		begin := time.Now()
		go func() {
			d := taken(t, limiter, rate, permit)
			first = time.Since(begin)
			settled(t, limiter, d)
		}()
		synctest.Wait()
		go func() {
			d := taken(t, limiter, permit)
			second = time.Since(begin)
			settled(t, limiter, d)
		}()
		time.Sleep(time.Second)
		settled(t, limiter, holding)
		time.Sleep(time.Minute)
		synctest.Wait()
		if first != 20*time.Second || second != time.Second {
			t.Errorf("admitted after %v and %v, want 20s and 1s", first, second)
		}
	})
}

// A call that can never be admitted waits for no permits, also where others wait
// for those of its key.
func TestLineOfNever(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		go func() { settled(t, limiter, taken(t, limiter, limit)) }()
		synctest.Wait()
		ask()
		settled(t, limiter, holding)
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
		settled(t, limiter, d)
		equal(t, "are held", limiter.Permits()["permits"], 0)
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
		refunded(t, limiter, d)
	}
}

// A program that makes new rules all the time does not fill its memory with those
// that were in flight.
func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for i := range 12_000 {
		limit := (&runtime.Rule{Name: fmt.Sprint(i), Algorithm: runtime.Concurrency, Window: time.Minute, Max: 1}).Limit(nil)
		settled(t, limiter, taken(t, limiter, limit))
	}
	if n := len(limiter.Permits()); n > 10_001 {
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
	bubble(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithRefusalError(func(_ context.Context, err error) error {
			t.Errorf("refused by %v", err)
			return err
		}))
		limit := waitingRule(1, time.Minute).Limit(nil)
		holding := taken(t, limiter, limit)
		ctx := lateContext{context.Background(), time.Now().Add(time.Second)}
		if _, err := limiter.Take(ctx, limit); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		settled(t, limiter, holding)
	})
}
