package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// waiters starts calls that wait, and returns when they do. done then waits for them
// and returns after how long each has ended, and how many were refused.
func waiters(limiter *runtime.Limiter, n int, hold time.Duration, limit runtime.Limit) (done func() (ended []time.Duration, refused int)) {
	var wait sync.WaitGroup
	var ends recorder[time.Duration]
	var refusals atomic.Int64
	start := time.Now()
	for range n {
		wait.Go(func() {
			d, err := limiter.Take(context.Background(), limit)
			ends.add(time.Since(start))
			if err != nil {
				refusals.Add(1)
				return
			}
			time.Sleep(hold)
			_ = limiter.Settle(context.Background(), d)
		})
		time.Sleep(time.Microsecond) // their order
	}
	synctest.Wait()
	return func() ([]time.Duration, int) {
		wait.Wait()
		return ends.all(), int(refusals.Load())
	}
}

// TestChangeWhileWaiting changes what holds for calls that wait for a full limit. All
// of them go on at once, or within the time in which a waiting call looks, as a call
// that arrives then does.
func TestChangeWhileWaiting(t *testing.T) {
	t.Parallel()
	set := func(o runtime.Overrides) func(*board, *atomic.Bool) {
		return func(b *board, _ *atomic.Bool) { b.set(o, nil) }
	}
	changes := map[string]func(*board, *atomic.Bool){
		"max raised":       set(overridesOf(rule.Override{Max: new(int64(100_000))})),
		"switched off":     set(overridesOf(rule.Override{Enabled: new(false)})),
		"shadow":           set(overridesOf(rule.Override{Mode: new(runtime.ModeShadow)})),
		"all switched off": set(runtime.Overrides{Enabled: new(false)}),
		"raised for key":   set(overridesOf(rule.Override{Keys: keys{"k": maximum(100_000)}})),
		"off for key":      set(overridesOf(rule.Override{Keys: keys{"k": {Enabled: new(false)}}})),
		"kill switch":      func(_ *board, on *atomic.Bool) { on.Store(false) },
	}
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.Concurrency, runtime.LeakyBucket} {
		for name, change := range changes {
			synctest.Test(t, func(t *testing.T) {
				var on atomic.Bool
				on.Store(true)
				limiter, b := following(t, 10*time.Millisecond, runtime.WithEnabled(on.Load))
				limit := (&runtime.Rule{Name: "r", Max: 1, Window: time.Minute, Wait: 20 * time.Minute, Algorithm: algorithm}).Limit(key("k"))
				first := taken(t, limiter, limit)
				done := waiters(limiter, 10, 0, limit)
				changed := time.Now()
				change(b, &on)
				ended, refused := done()
				if took := time.Since(changed); took > 150*time.Millisecond || refused > 0 {
					t.Errorf("%v, %s: %d refused, the calls went on after %v", algorithm, name, refused, ended)
				}
				_ = limiter.Settle(t.Context(), first)
			})
		}
	}
}

// TestPaceAfterChange changes the max while calls wait. They go on in order: no more of them
// run at a time than a lowered max says, and turns of a queue are sooner, and no closer than
// the new rate says.
func TestPaceAfterChange(t *testing.T) {
	type test struct {
		rule        *runtime.Rule
		hold        time.Duration
		to          int64
		from        int           // the first call that goes by the new max
		least, most time.Duration // between calls
	}
	queue := &runtime.Rule{Algorithm: runtime.LeakyBucket, Max: 1, Window: time.Second}
	tests := map[string]test{"permits lowered": {permitRule(2), time.Second, 1, 3, 900 * time.Millisecond, time.Minute}}
	for _, max := range []int64{2, 10, 100} {
		apart := time.Second / time.Duration(max)
		tests[fmt.Sprint("turns raised to ", max)] = test{queue, 0, max, 2, apart * 99 / 100, apart * 101 / 100}
	}
	eachCase(t, tests, func(t *testing.T, test test) {
		limiter, b := following(t, 10*time.Millisecond)
		r := *test.rule
		r.Name, r.Wait = "r", time.Minute
		done := waiters(limiter, 20, test.hold, r.Limit(nil))
		b.set(overridesOf(rule.Override{Max: &test.to}), nil)
		ended, refused := done()
		equal(t, "refused", refused, 0)
		for i := test.from; i < len(ended); i++ {
			between(t, fmt.Sprintf("call %d went on later than the one before by", i), ended[i]-ended[i-1], test.least, test.most)
		}
	})
}

// TestNewcomersBehindWaiting has calls arrive under a raised max: those that have waited
// get the permits first.
func TestNewcomersBehindWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, b := following(t, 10*time.Millisecond)
		r := permitRule(2)
		r.Name, r.Wait = "r", 10*time.Second
		limit := r.Limit(nil)
		done := waiters(limiter, 12, 100*time.Millisecond, limit)
		b.set(overridesOf(rule.Override{Max: new(int64(4))}), nil)
		newcomers := 0
		for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if d, err := limiter.Take(ctx, limit); err == nil {
				newcomers++
				time.AfterFunc(100*time.Millisecond, func() { _ = limiter.Settle(context.Background(), d) })
			}
			cancel()
		}
		ended, refused := done()
		if last := ended[len(ended)-1]; refused > 0 || last > 500*time.Millisecond {
			t.Errorf("%d of those that waited were refused, the last went on after %v, and %d newcomers were served", refused, last, newcomers)
		}
	})
}

// TestScaleWhileWaiting has the load scale a limit up while a call waits.
func TestScaleWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var factor atomic.Int64
		factor.Store(1)
		limiter := inMemory()
		defer func() { _ = limiter.Close() }()
		limit := (&runtime.Rule{Name: "r", Max: 1, Window: time.Hour, Wait: 10 * time.Hour, Adaptive: scalerFunc(func(rule.Load) float64 { return float64(factor.Load()) })}).Limit(nil)
		taken(t, limiter, limit)
		done := waiters(limiter, 3, 0, limit)
		factor.Store(10)
		if ended, refused := done(); refused > 0 || ended[2] > 3*time.Second {
			t.Errorf("%d refused, the calls went on after %v", refused, ended)
		}
	})
}
