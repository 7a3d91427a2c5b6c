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

// At 100 messages a second there is at most a trip for each ten, and a call that is slow
// takes nothing in advance.
func TestMeterTrips(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pause    time.Duration
		messages int
		most     float64 // trips a message, for each limit
	}{{10 * time.Millisecond, 1000, 0.02}, {10 * time.Millisecond, 100, 0.06}, {time.Millisecond, 5000, 0.003}, {2 * time.Second, 50, 1.06}} {
		for limits := 1; limits <= 3; limits++ {
			synctest.Test(t, func(t *testing.T) {
				limiter, store := onFake()
				var all []runtime.Limit
				costs := []int64{3, 50, 1}[:limits]
				for i := range limits {
					rule := perDay(1_000_000_000)
					rule.Name = fmt.Sprint("r", i)
					all = append(all, rule.Limit(nil))
				}
				m := metered(t, limiter, all...)
				charge(t, m, test.messages, test.pause, costs...)
				m.Close()
				ok(t, limiter.Close())
				if trips := float64(store.trips()) / float64(test.messages); trips > test.most*float64(limits) {
					t.Errorf("%d limits, every %v: %.3f trips a message", limits, test.pause, trips)
				}
				for i, limit := range all {
					wantLeft(t, limiter, limit, 1_000_000_000-int64(test.messages)*costs[i])
				}
			})
		}
	}
}

// What Take has charged and was not used is in advance, and given back by Close, but for the
// turn of a queue that has begun. What has drained from a bucket meanwhile is of all charges.
func TestMeterBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, limiter := context.Background(), inMemory()
		begin := func(rule *runtime.Rule, cost, used, advance int64) {
			t.Helper()
			m := limiter.Meter(ctx, taken(t, limiter, rule.Limit(nil).WithCost(cost)), used)
			equal(t, fmt.Sprintf("%s: %d of %d used: in advance", rule.Name, used, cost), m.Advance(0), advance)
			m.Close()
		}
		total := int64(0)
		for used, advance := range map[int64]int64{-1: 0, 0: 10, 4: 6, 10: 0, 12: 0} {
			begin(wide, 10, used, advance)
			total += 10 - advance
			wantLeft(t, limiter, wide.Limit(nil), 1_000_000-total)
		}
		queue := &runtime.Rule{Name: "queue", Algorithm: runtime.LeakyBucket, Window: time.Hour, Max: 10, Wait: 24 * time.Hour}
		room := left(t, limiter, queue.Limit(nil))
		begin(queue, 3, 0, 3)
		wantLeft(t, limiter, queue.Limit(nil), room-1)
		bucket := &runtime.Rule{Name: "bucket", Algorithm: runtime.TokenBucket, Window: 100 * time.Hour, Max: 3600}
		taken(t, limiter, bucket.Limit(nil).WithCost(3000))
		time.Sleep(4000 * time.Minute)
		begin(bucket, 400, 100, 300)
		wantLeft(t, limiter, bucket.Limit(nil), 3600-600-100)
		m := metered(t, limiter, bucket.Limit(nil))
		time.Sleep(500 * time.Minute)
		room = left(t, limiter, bucket.Limit(nil))
		charge(t, m, 2, 10*time.Millisecond, 10)
		between(t, "taken in advance", m.Advance(0), 1, 80)
		m.Close()
		between(t, "left", left(t, limiter, bucket.Limit(nil)), room-20, room-19) // of a unit a part may have drained
	})
}
