package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// waiters starts calls that wait, and returns when they do. done then waits for them
// and returns after how long each has ended, and how many were refused.
func waiters(limiter *runtime.Limiter, n int, hold time.Duration, limit runtime.Limit) (done func() (ended []time.Duration, refused int)) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var ended []time.Duration
	refused, start := 0, time.Now()
	for range n {
		wait.Go(func() {
			d, err := limiter.Take(context.Background(), limit)
			mu.Lock()
			ended = append(ended, time.Since(start))
			if err != nil {
				refused++
			}
			mu.Unlock()
			if err == nil {
				time.Sleep(hold)
				_ = limiter.Settle(context.Background(), d)
			}
		})
		time.Sleep(time.Microsecond) // their order
	}
	synctest.Wait()
	return func() ([]time.Duration, int) {
		wait.Wait()
		return ended, refused
	}
}

// TestChangeWhileWaiting changes what holds for calls that wait for a full limit. All
// of them go on at once, or within the time in which a waiting call looks, as a call
// that arrives then does.
func TestChangeWhileWaiting(t *testing.T) {
	t.Parallel()
	full := []runtime.Rule{
		{Algorithm: runtime.SlidingLog}, {Algorithm: runtime.SlidingCounter}, {Algorithm: runtime.FixedWindow},
		{Algorithm: runtime.Concurrency}, {Algorithm: runtime.LeakyBucket},
	}
	set := func(o runtime.Overrides) func(*board, *atomic.Bool) {
		return func(b *board, _ *atomic.Bool) { b.set(o, nil) }
	}
	changes := map[string]func(*board, *atomic.Bool){
		"max raised":       set(one(runtime.Override{Max: new(int64(100_000))})),
		"switched off":     set(one(runtime.Override{Enabled: new(false)})),
		"shadow":           set(one(runtime.Override{Mode: new(runtime.ModeShadow)})),
		"all switched off": set(runtime.Overrides{Enabled: new(false)}),
		"raised for key":   set(one(runtime.Override{Keys: keys{"k": maximum(100_000)}})),
		"off for key":      set(one(runtime.Override{Keys: keys{"k": {Enabled: new(false)}}})),
		"kill switch":      func(_ *board, on *atomic.Bool) { on.Store(false) },
	}
	for _, rule := range full {
		rule.Name, rule.Max, rule.Window, rule.Wait = "r", 1, time.Minute, 20*time.Minute
		for name, change := range changes {
			synctest.Test(t, func(t *testing.T) {
				var on atomic.Bool
				on.Store(true)
				limiter, b := following(t, 10*time.Millisecond, runtime.WithEnabled(on.Load))
				limit := rule.Limit(key("k"))
				first := taken(t, limiter, limit)
				done := waiters(limiter, 10, 0, limit)
				changed := time.Now()
				change(b, &on)
				ended, refused := done()
				if took := time.Since(changed); took > 150*time.Millisecond || refused > 0 {
					t.Errorf("%v, %s: %d refused, the calls went on after %v", rule.Algorithm, name, refused, ended)
				}
				_ = limiter.Settle(t.Context(), first)
			})
		}
	}
}

// TestLowerWhileWaiting lowers a limit of calls at a time: of those that wait no more
// run than it says from then on.
func TestLowerWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, b := following(t, 10*time.Millisecond)
		rule := permitRule(2)
		rule.Name, rule.Wait = "r", time.Minute
		done := waiters(limiter, 12, time.Second, rule.Limit(nil))
		b.set(one(runtime.Override{Max: new(int64(1))}), nil)
		ended, refused := done()
		for i := 3; i < len(ended); i++ {
			if gap := ended[i] - ended[i-1]; gap < 900*time.Millisecond {
				t.Errorf("call %d began %v after the one before", i, gap)
			}
		}
		if refused > 0 {
			t.Errorf("%d were refused", refused)
		}
	})
}

// TestNewcomersBehindWaiting has calls arrive under a raised max: those that have waited
// get the permits first.
func TestNewcomersBehindWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, b := following(t, 10*time.Millisecond)
		rule := permitRule(2)
		rule.Name, rule.Wait = "r", 10*time.Second
		limit := rule.Limit(nil)
		done := waiters(limiter, 12, 100*time.Millisecond, limit)
		b.set(one(runtime.Override{Max: new(int64(4))}), nil)
		newcomers := 0
		until := time.Now().Add(time.Second)
		for time.Now().Before(until) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			d, err := limiter.Take(ctx, limit)
			if err == nil {
				newcomers++
				time.AfterFunc(100*time.Millisecond, func() { _ = limiter.Settle(context.Background(), d) })
			}
			cancel()
			time.Sleep(5 * time.Millisecond)
		}
		ended, refused := done()
		if last := ended[len(ended)-1]; refused > 0 || last > 500*time.Millisecond {
			t.Errorf("%d of those that waited were refused, the last went on after %v, and %d newcomers were served", refused, last, newcomers)
		}
	})
}

// TestTurnsWhenRaised raises the rate of a queue while calls wait for their turns: they
// get sooner ones, in order, and no closer than the new rate says.
func TestTurnsWhenRaised(t *testing.T) {
	t.Parallel()
	for _, max := range []int64{2, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			limiter, b := following(t, 10*time.Millisecond)
			limit := (&runtime.Rule{Name: "r", Algorithm: runtime.LeakyBucket, Max: 1, Window: time.Second, Wait: time.Minute}).Limit(nil)
			done := waiters(limiter, 20, 0, limit)
			b.set(one(runtime.Override{Max: &max}), nil)
			ended, refused := done()
			apart := time.Second / time.Duration(max)
			for i := 2; i < len(ended); i++ {
				if gap := ended[i] - ended[i-1]; gap < apart*99/100 || gap > apart*101/100 {
					t.Errorf("max %d: turn %d came %v after the one before, want %v", max, i, gap, apart)
				}
			}
			if refused > 0 {
				t.Errorf("max %d: %d refused", max, refused)
			}
		})
	}
}

// TestScaleWhileWaiting has the load scale a limit up while a call waits.
func TestScaleWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var factor atomic.Int64
		factor.Store(1)
		rule := &runtime.Rule{Name: "r", Max: 1, Window: time.Hour, Wait: 10 * time.Hour,
			Adaptive: scalerFunc(func(runtime.Load) float64 { return float64(factor.Load()) })}
		limiter := inMemory()
		defer func() { _ = limiter.Close() }()
		taken(t, limiter, rule.Limit(nil))
		done := waiters(limiter, 3, 0, rule.Limit(nil))
		factor.Store(10)
		if ended, refused := done(); refused > 0 || ended[2] > 3*time.Second {
			t.Errorf("%d refused, the calls went on after %v", refused, ended)
		}
	})
}

// A change that a rule does not allow, or that makes a waiting call's limit one that
// never admits it, ends its wait with the error that a new call gets.
func TestNeverWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, b := following(t, 10*time.Millisecond)
		limit := (&runtime.Rule{Name: "r", Max: 1, Window: time.Hour, Wait: 10 * time.Hour}).Limit(nil)
		taken(t, limiter, limit)
		failed := make(chan error, 1)
		go func() {
			_, err := limiter.Take(context.Background(), limit)
			failed <- err
		}()
		synctest.Wait()
		b.set(one(runtime.Override{Max: new(int64(0))}), nil)
		start := time.Now()
		if err := <-failed; !errors.Is(err, runtime.ErrCostExceedsLimit) || time.Since(start) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		equal(t, "lines and calls in them", limiter.Lines(), 0)
	})
}
