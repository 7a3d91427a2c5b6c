package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
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
			limiter, store := onFake()
			limit := waitingRule(max, time.Minute).Limit(key("k"))
			const callers, hold = 60, 7 * time.Millisecond
			var order recorder[int]
			begin := time.Now()
			concurrently(callers, func(i int) {
				time.Sleep(time.Duration(i)) // one comes after the other
				d := taken(t, limiter, limit)
				order.add(i)
				time.Sleep(hold)
				settled(t, limiter, d)
			})
			for i, caller := range order.all() { // those of one moment in any order
				if d := int64(caller - i); d <= -max || d >= max {
					t.Fatalf("max %d: admitted in the order %v", max, order.all())
				}
			}
			if took, want := time.Since(begin), callers/time.Duration(max)*hold; took < want || took > want+callers {
				t.Errorf("max %d: took %v, want %v", max, took, want)
			}
			// A call asks when it arrives or when a permit comes back, and once
			// more than it finds room. In between it is asked after 5 ms or so.
			between(t, "questions to the store", store.takes.Load(), callers, 5*callers)
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
			between(t, "waited", elapsed(func() { mine = taken(t, here, limit) }), hold, hold+65*time.Millisecond)
			settled(t, here, mine)
		}
	})
}

// A lateContext has a deadline and no end.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A call waits no longer than its rule and its context let it. By its rule it is refused, and
// by its context it is not, even if that has not said yet that its deadline is over.
func TestLineEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithRefusalError(func(ctx context.Context, err error) error {
			if _, ends := ctx.Deadline(); ends {
				t.Errorf("refused by %v", err)
			}
			return err
		}))
		limit := waitingRule(1, 300*time.Millisecond).Limit(nil)
		holding := taken(t, limiter, limit)
		for range 3 { // the second and third wait behind others
			go func() {
				var limited *runtime.LimitedError
				took := elapsed(func() { _, limited = refused(t, limiter, limit) })
				if took != 300*time.Millisecond || limited.RetryAfter <= 0 || limited.Limit != 1 {
					t.Errorf("after %v: %+v", took, limited)
				}
			}()
		}
		const soon = 200 * time.Millisecond
		ends, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		for _, ctx := range []context.Context{ends, lateContext{context.Background(), time.Now().Add(soon)}} {
			go func() {
				var err error
				if took := elapsed(func() { _, err = limiter.Take(ctx, limit) }); took != soon || err != context.DeadlineExceeded {
					t.Errorf("got %v after %v", err, took)
				}
			}()
		}
		time.Sleep(time.Second)
		// Nobody is left in the line: a call asks at once.
		equal(t, "lines and calls in them", limiter.Lines(), 0)
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
		var done recorder[runtime.Decision]
		for range 3 {
			go func() {
				d := taken(t, limiter, low)
				done.add(d)
				settled(t, limiter, d)
			}()
		}
		synctest.Wait()
		equal(t, "the important calls waited", elapsed(func() { taken(t, limiter, limit); taken(t, limiter, limit) }), 0)
		equal(t, "others admitted", len(done.all()), 0)
		settled(t, limiter, eight)
		synctest.Wait()
		equal(t, "others admitted when there was room", len(done.all()), 3)
	})
}

// A call that waits for a rate holds up nobody who waits for permits.
func TestLineBesideRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		permit := waitingRule(1, time.Minute).Limit(nil)
		rate := (&runtime.Rule{Name: "rate", Window: 20 * time.Second, Max: 1, Wait: time.Minute}).Limit(nil)
		holding := taken(t, limiter, rate, permit)
		waited := make([]time.Duration, 2)
		for i, limits := range [][]runtime.Limit{{rate, permit}, {permit}} {
			go func() {
				var d runtime.Decision
				waited[i] = elapsed(func() { d = taken(t, limiter, limits...) })
				settled(t, limiter, d)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		settled(t, limiter, holding)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "waited", []time.Duration{20 * time.Second, time.Second}, waited)
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
				equal(t, "waited", elapsed(func() { d, _ = refused(t, limiter, limits...) }), 0)
				equal(t, "retry after", d.RetryAfter, runtime.Never)
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
	type test struct {
		store runtime.Store
		limit runtime.Limit
	}
	odd := permitRule(3)
	odd.Name = "r"
	tests := map[string]test{}
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "broken": broken()} {
		tests["key, "+name] = test{store, odd.Limit(runtime.NewKey().AddInvalid("none"))}
	}
	for _, max := range []int64{-1, 0, 1, rule.MaxLog + 1} {
		tests[fmt.Sprint("max ", max)] = test{runtime.NewMemoryStore(), odd.Limit(key("k")).WithMax(max).WithCost(2)}
	}
	eachCase(t, tests, func(t *testing.T, test test) {
		b := new(board)
		b.set(overridesOf(rule.Override{Max: new(int64(5))}), nil)
		limiter := runtime.New(test.store, quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithOverrides(b, time.Second))
		defer func() { _ = limiter.Close() }()
		d := taken(t, limiter, test.limit)
		b.put(runtime.Overrides{})
		settled(t, limiter, d)
		equal(t, "are held", bridge.LimiterOf(limiter).Permits()["r"], 0)
	})
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
	between(t, "names", len(bridge.LimiterOf(limiter).Permits()), 1, 10_001)
}
