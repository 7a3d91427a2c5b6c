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
					limit := (&runtime.Rule{Name: "r", Algorithm: algorithm, Window: 300 * 24 * time.Hour, Max: 2000}).Limit(nil)
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
					if got := sum.Load(); got > 2000 || got <= 2000-cost {
						t.Errorf("%v, %d calls, %d a message: %d used", algorithm, calls, cost, got)
					}
					wantLeft(t, limiter, limit, 2000-sum.Load())
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

// What nobody uses is given back within about a second, whether the call ends or hangs, and
// a use after that is paid anew.
func TestMeterHoldsNothingForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, limit := inMemory(), wide.Limit(nil)
		ctx, cancel := context.WithCancel(context.Background())
		d := taken(t, limiter, limit)
		m := limiter.Meter(ctx, d, 0)
		charge(t, m, 100, time.Millisecond, 1)
		held := m.Advance(0)
		if held == 0 {
			t.Error("nothing is taken in advance")
		}
		wantLeft(t, limiter, limit, 1_000_000-100-held)
		time.Sleep(1001 * time.Millisecond)
		wantLeft(t, limiter, limit, 1_000_000-100)
		equal(t, "advances", [3]int64{m.Advance(0), m.Advance(1), m.Advance(-1)}, [3]int64{})
		ok(t, m.Charge(5))
		cancel()
		wantError(t, "its caller has gone", m.Charge(1), context.Canceled)
		time.Sleep(1001 * time.Millisecond)
		wantLeft(t, limiter, limit, 1_000_000-105)
		m.Close()
		wantLeft(t, limiter, limit, 1_000_000-105)
		equal(t, "the decision, settled again", limiter.Settle(ctx, d, 0), runtime.ErrSettled)
	})
}

// Each limit gives back a second after its own trip.
func TestMeterGivesBackInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, other := inMemory(), *wide
		other.Name, other.Prefix = "other", "other:"
		m := metered(t, limiter, wide.Limit(nil), other.Limit(nil))
		for range 2 {
			time.Sleep(150 * time.Millisecond)
			ok(t, m.Charge(0, 2))
		}
		time.Sleep(701 * time.Millisecond)
		wantLeft(t, limiter, wide.Limit(nil), 1_000_000)
		wantLeft(t, limiter, other.Limit(nil), 1_000_000-7)
		time.Sleep(300 * time.Millisecond)
		wantLeft(t, limiter, other.Limit(nil), 1_000_000-4)
		m.Close()
	})
}

// A second meter of a decision, and one of another limiter's, charge nothing.
func TestMeterOwnsItsDecision(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	d := taken(t, limiter, wide.Limit(nil).WithCost(10))
	m := limiter.Meter(context.Background(), d)
	for other, want := range map[*runtime.Meter]error{
		limiter.Meter(context.Background(), d):    runtime.ErrSettled,
		inMemory().Meter(context.Background(), d): runtime.ErrOtherLimiter,
	} {
		equal(t, "another meter", other.Charge(1), want)
		other.Close()
	}
	ok(t, m.Charge(5))
	m.Close()
	equal(t, "a closed meter", m.Charge(1), runtime.ErrSettled)
	wantLeft(t, limiter, wide.Limit(nil), 1_000_000-15)

	other := *wide
	other.Name, other.Max = "other", 9
	wantError(t, "two limits of one key", metered(t, limiter, wide.Limit(key("2")), other.Limit(key("2"))).Charge(1), runtime.ErrInvalidLimit)
	wantError(t, "a cost of -1", metered(t, limiter, wide.Limit(nil)).Charge(-1), runtime.ErrInvalidLimit)
	free := metered(t, limiter)
	ok(t, free.Charge(1, 2, 3))
	free.Close(1)
}

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
					refused(t, limiter, runtime.ErrUnavailable, limit)
					return
				}
				m := metered(t, limiter, limit)
				store.broken.Store(true)
				time.Sleep(2 * time.Second) // what was taken in advance is given back
				n, err := int64(0), error(nil)
				for ; n < 300; n++ {
					if err = m.Charge(1); err != nil {
						break
					}
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
