package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// used charges a meter until it refuses, and returns how often it did not.
func used(t testing.TB, m *runtime.Meter, pause time.Duration, costs ...int64) (n int64) {
	t.Helper()
	for {
		err := m.Charge(costs...)
		if errors.Is(err, runtime.ErrLimited) {
			if again := m.Charge(costs...); again != err {
				t.Fatalf("after %v it says %v", err, again)
			}
			return n
		}
		ok(t, err)
		n++
		time.Sleep(pause)
	}
}

// charge charges a meter for so many messages, which must pass.
func charge(t testing.TB, m *runtime.Meter, messages int, pause time.Duration, costs ...int64) {
	t.Helper()
	for range messages {
		ok(t, m.Charge(costs...))
		time.Sleep(pause)
	}
}

// Whatever a message costs and however many calls run, they use all of a budget but what is
// less than a message, and never more; and then nothing is held.
func TestMeterUsesAll(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		for _, calls := range []int{1, 2, 8} {
			for _, cost := range []int64{1, 2, 7, 100} {
				synctest.Test(t, func(t *testing.T) {
					limiter := inMemory()
					limit := (&runtime.Rule{Name: "r", Algorithm: algorithm, Window: 300 * 24 * time.Hour, Max: 4000}).Limit(nil)
					var sum atomic.Int64
					concurrently(calls, func(int) {
						for n := int64(1); n > 0; { // is patient
							d, err := limiter.Take(context.Background(), limit)
							if err != nil {
								return
							}
							m := limiter.Meter(context.Background(), d, 0)
							n = used(t, m, time.Millisecond, cost)
							sum.Add(n * cost)
							m.Close()
							m.Close()
							time.Sleep(2 * time.Second) // others have given back what they held
						}
					})
					if got := sum.Load(); got > 4000 || got <= 4000-cost {
						t.Errorf("%v, %d calls, %d a message: %d used", algorithm, calls, cost, got)
					}
					wantLeft(t, limiter, limit, 4000-sum.Load())
				})
			}
		}
	}
}
