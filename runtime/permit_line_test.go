package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/effort"
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
			store := &scripted{MemoryStore: runtime.NewMemoryStore()}
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
					settled(t, limiter, d, limit)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		here, there := runtime.New(store, quiet), runtime.New(store, quiet)
		limit := waitingRule(1, time.Minute).Limit(key("k"))
		for _, hold := range []time.Duration{time.Microsecond, time.Millisecond, 100 * time.Millisecond, time.Second, 59 * time.Second} {
			d := taken(t, there, limit)
			time.AfterFunc(hold, func() { _ = there.Settle(context.Background(), d, limit) })
			var mine runtime.Decision
			took := elapsed(func() { mine = taken(t, here, limit) })
			if took < hold || took > hold+65*time.Millisecond {
				t.Errorf("held for %v: waited %v", hold, took)
			}
			settled(t, here, mine, limit)
		}
	})
}

// A call waits no longer than its rule and its context let it, and is denied by
// what the store says then.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		settled(t, limiter, holding, limit)
		if took := elapsed(func() { holding = taken(t, limiter, limit) }); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

// Who may use more of the limit does not wait behind those who may use less of it.
func TestLineOfPriorities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		limit := waitingRule(10, time.Minute).Limit(nil)
		low := limit.WithMax(8)
		eight := taken(t, limiter, low.WithCost(8))
		var done atomic.Int32
		for range 3 {
			go func() {
				d := taken(t, limiter, low)
				done.Add(1)
				settled(t, limiter, d, low)
			}()
		}
		synctest.Wait()
		if took := elapsed(func() { taken(t, limiter, limit); taken(t, limiter, limit) }); took != 0 || done.Load() != 0 {
			t.Errorf("waited %v, and %d of low priority were admitted", took, done.Load())
		}
		settled(t, limiter, eight, low.WithCost(8))
		synctest.Wait()
		if done.Load() != 3 {
			t.Errorf("%d of low priority were admitted when there was room", done.Load())
		}
	})
}

// A call that waits for a rate holds up nobody who waits for permits.
func TestLineBesideRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		permit := waitingRule(1, time.Minute).Limit(nil)
		rate := (&runtime.Rule{Name: "rate", Window: 20 * time.Second, Max: 1, Wait: time.Minute}).Limit(nil)
		holding := taken(t, limiter, rate, permit)
		var first, second time.Duration
		begin := time.Now()
		go func() {
			d := taken(t, limiter, rate, permit)
			first = time.Since(begin)
			settled(t, limiter, d, rate, permit)
		}()
		synctest.Wait()
		go func() {
			d := taken(t, limiter, permit)
			second = time.Since(begin)
			settled(t, limiter, d, permit)
		}()
		time.Sleep(time.Second)
		settled(t, limiter, holding, rate, permit)
		time.Sleep(time.Minute)
		synctest.Wait()
		if first != 20*time.Second || second != time.Second {
			t.Errorf("admitted after %v and %v, want 20s and 1s", first, second)
		}
	})
}

// Whatever callers do there are never more permits than max, and none is lost.
func TestLineOfAnyCallers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(effort.Few(20)) {
		synctest.Test(t, func(t *testing.T) {
			store := runtime.NewMemoryStore()
			limiters := []*runtime.Limiter{runtime.New(store, quiet), runtime.New(pass{store}, quiet)}
			const max = 7
			var held [2]atomic.Int64 // of each key
			var wait sync.WaitGroup
			for caller := range uint64(40) {
				wait.Go(func() {
					random := rand.New(rand.NewPCG(seed, caller))
					for range 12 {
						limiter := limiters[random.IntN(2)]
						rule := waitingRule(max, time.Duration(random.IntN(3))*400*time.Millisecond)
						cost := []int64{1 + random.Int64N(3), 1 + random.Int64N(3)}
						limits := []runtime.Limit{rule.Limit(key("0")).WithCost(cost[0]), rule.Limit(key("1")).WithCost(cost[1])}
						from, to := random.IntN(2), 1+random.IntN(2)
						if from >= to {
							from = 0
						}
						limits, keys := limits[from:to], []int{0, 1}[from:to]
						ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(2000))*time.Millisecond)
						d, err := limiter.Take(ctx, limits...)
						if err == nil {
							for _, k := range keys {
								if n := held[k].Add(cost[k]); n > max {
									t.Errorf("seed %d: %d in flight", seed, n)
								}
							}
							time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
							for _, k := range keys {
								held[k].Add(-cost[k])
							}
							if random.IntN(2) == 0 {
								settled(t, limiter, d, limits...)
							} else {
								limiter.SettleLater(ctx, d, limits...)
							}
						} else if !errors.Is(err, runtime.ErrLimited) && !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						cancel()
					}
				})
			}
			wait.Wait()
			time.Sleep(time.Second)
			for i, limiter := range limiters {
				if diff := cmp.Diff(map[string]int64{"permits": 0}, limiter.InFlight()); diff != "" {
					t.Errorf("seed %d, limiter %d: in flight (-want +got):\n%s", seed, i, diff)
				}
				if n := limiter.Lines(); n != 0 {
					t.Errorf("seed %d, limiter %d: %d lines", seed, i, n)
				}
			}
			for _, k := range []string{"0", "1"} {
				wantLeft(t, limiters[0], permitRule(max).Limit(key(k)), max)
			}
		})
	}
}

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
