package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestLatency feeds an adaptive rule with calls and looks at what its scaler is
// told.
func TestLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var load runtime.Load
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 1000}
		rule.Adaptive = scalerFunc(func(l runtime.Load) float64 { load = l; return 1 })
		limiter := runtime.New(runtime.NewMemoryStore(), quiet)
		defer limiter.Close()
		// run has calls a second that take so long.
		run := func(length time.Duration, calls int, took ...time.Duration) {
			for ; length > 0; length -= time.Second {
				for i := range calls {
					limiter.Measure(rule, time.Now().Add(-took[i%len(took)]))
				}
				time.Sleep(time.Second)
				if _, err := limiter.Take(t.Context(), rule.Limit(nil)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		between := func(when string, got, low, high time.Duration) {
			t.Helper()
			if got < low || got > high {
				t.Errorf("%s: %v is not between %v and %v", when, got, low, high)
			}
		}
		const ms = time.Millisecond
		run(5*time.Second, 0)
		between("before the first call", load.Latency+load.Usual, 0, 0)
		run(time.Second, 1, 500*ms)
		between("the first call", load.Latency, 500*ms, 500*ms)
		between("the first call, usual", load.Usual, 500*ms, 500*ms)
		run(5*time.Minute, 100, 5*ms, 15*ms)
		between("after a slow start", load.Latency, 10*ms-1, 10*ms+1)
		between("after a slow start, usual", load.Usual, 10*ms, 40*ms)
		run(4*time.Hour, 100, 10*ms)
		usual := load.Usual
		between("after hours", usual, 10*ms, 20*ms)

		run(time.Second, 1, 100*ms)
		between("one slow call", load.Latency, 10*ms, 22*ms)
		run(30*time.Second, 100, 10*ms)
		run(10*time.Second, 100, 100*ms)
		between("ten seconds of overload", load.Latency, 80*ms, 100*ms)
		run(time.Hour, 100, 100*ms)
		between("an hour of overload", load.Latency, 100*ms-1, 100*ms+1)
		between("an hour of overload, usual", load.Usual, usual, usual+12*ms)
		run(20*time.Second, 100, 10*ms)
		between("over", load.Latency, 10*ms, 12*ms)

		run(time.Second, 1, -time.Hour)
		limiter.Measure(rule, time.Time{}) // never started
		run(time.Second, 1, 0)
		between("nonsense", load.Latency, 0, time.Hour)
		run(4*time.Minute, 100, 10*ms)
		between("after nonsense", load.Latency, 10*ms-1, 10*ms+1)
	})
}
