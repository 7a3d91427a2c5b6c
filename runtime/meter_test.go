package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
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

// All limits are charged for a message, or none.
func TestMeterAllOrNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			limiter := inMemory()
			var limits []runtime.Limit
			var want []int64
			for i := range 1 + random.IntN(3) {
				rule := &runtime.Rule{Name: fmt.Sprint("r", i), Algorithm: algorithms[random.IntN(3)], Window: 300 * 24 * time.Hour, Max: 50 + random.Int64N(500)}
				limits, want = append(limits, rule.Limit(key("k"))), append(want, rule.Max)
			}
			m, costs := metered(t, limiter, limits...), make([]int64, len(limits))
			for {
				for i := range costs {
					costs[i] = random.Int64N(10)
				}
				if m.Charge(costs...) != nil {
					break
				}
				for i, cost := range costs {
					want[i] -= cost
				}
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			}
			m.Close()
			for i, limit := range limits {
				wantLeft(t, limiter, limit, want[i])
			}
		}
	})
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

// On a store that bounds nothing a message waits for as long as its call does, and for a second
// more, in which the store may tell what it has taken.
func TestMeterOnSlowStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake()
		ctx, cancel := context.WithCancel(context.Background())
		m := limiter.Meter(ctx, taken(t, limiter, wide.Limit(nil)), 0)
		wait := 3 * time.Second
		store.take = func(ctx context.Context, calls []terms.Call) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
				return store.MemoryStore.Take(ctx, calls)
			}
		}
		ok(t, m.Charge(2))
		wait = time.Hour
		time.AfterFunc(2*time.Second, cancel)
		equal(t, "time until the call has ended", elapsed(func() { wantError(t, "the last message", m.Charge(100), context.Canceled) }), 3*time.Second)
		m.Close()
		wait = 0
		wantLeft(t, limiter, wide.Limit(nil), 1_000_000-2)
		ok(t, limiter.Close())
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

// A limit in shadow mode never stops a call, and has counted what it had room for; another
// limit of the call is exact.
func TestMeterInShadow(t *testing.T) {
	t.Parallel()
	for _, mode := range []runtime.Mode{runtime.ModeShadow, runtime.ModeSoft} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			shadow, rule := perDay(100), perDay(5000)
			shadow.Name, shadow.Mode = "s", mode
			ctx := runtime.WithExceeded(context.Background())
			d, err := limiter.Take(ctx, shadow.Limit(nil), rule.Limit(nil))
			ok(t, err)
			m := limiter.Meter(ctx, d, 0, 0)
			equal(t, "passed", used(t, m, 10*time.Millisecond, 1, 1), 5000)
			m.Close()
			ok(t, limiter.Close())
			if trips := store.trips(); trips > 500 {
				t.Errorf("%d trips", trips)
			}
			wantLeft(t, limiter, rule.Limit(nil), 0)
			wantLeft(t, limiter, shadow.Limit(nil), 0)
			equal(t, "errors that are kept for the call", len(runtime.Exceeded(ctx)), 0)
		})
	}
}

// Observers hear of a refusal once, when it ends the call, and of as much as was charged.
func TestMeterEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen recorder[runtime.DecisionEvent]
		limiter := inMemory(observing(runtime.Observer{Decision: withContext(seen.add)}))
		limit := perDay(1000).Limit(nil)
		first, second := metered(t, limiter, limit), metered(t, limiter, limit)
		charge(t, first, 100, time.Millisecond, 1)
		ok(t, second.Charge(895-first.Advance(0))) // so that a piece is refused
		used(t, first, 0, 1)
		for i, ev := range seen.all() {
			if last := i == len(seen.all())-1; last != (ev.Verdict == runtime.VerdictDenied) {
				t.Errorf("event %d of %d: %+v", i, len(seen.all()), ev)
			}
		}
	})
}

// What holds at a trip decides: overrides, the kill switch, and the process's cap not at all.
func TestMeterFollowsOverrides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		on := atomic.Bool{}
		on.Store(true)
		limiter, b := following(t, time.Second, runtime.WithEnabled(on.Load), runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: 24 * time.Hour, Max: 3}))
		rule := perDay(100)
		limiter.Register(rule)
		m := metered(t, limiter, rule.Limit(nil))
		charge(t, m, 100, 20*time.Millisecond, 1)
		b.put(overridesOf(runtime.Override{Max: new(int64(150))}))
		charge(t, m, 50, 0, 1)
		on.Store(false)
		charge(t, m, 50, 0, 1)
		on.Store(true)
		b.put(overridesOf(runtime.Override{Enabled: new(false)}))
		charge(t, m, 50, 0, 1)
		b.put(overridesOf(runtime.Override{Mode: new(runtime.ModeShadow)}))
		charge(t, m, 50, 0, 1)
		b.put(overridesOf(runtime.Override{Max: new(int64(160))}))
		equal(t, "passed under the last override", used(t, m, 0, 1), 10)
		m.Close()
	})
}

// A rule with a Block begins it only when a message has no room, and then the call ends.
func TestMeterWithBlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		limit := (&runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 100, Block: 24 * time.Hour}).Limit(nil)
		m, other := metered(t, limiter, limit), metered(t, limiter, limit)
		ok(t, other.Charge(49))
		equal(t, "passed", used(t, m, time.Millisecond, 1), 51)
		blockedBy(t, limiter, limit)
		m.Close()
	})
}

// A rule with a Wait lets a message wait for room. A queue gives each message its turn.
func TestMeterWaits(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[runtime.Algorithm]time.Duration{runtime.TokenBucket: 90 * time.Second, runtime.LeakyBucket: 99 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: time.Second, Max: 1, Burst: 10, Wait: 5 * time.Second}
			took := elapsed(func() {
				m := metered(t, inMemory(), rule.Limit(nil))
				charge(t, m, 100, 0, 1)
				m.Close()
			})
			if took < want-2*time.Second || took > want+2*time.Second {
				t.Errorf("%v: 100 messages took %v, want %v", algorithm, took, want)
			}
		})
	}
}

// A lease may decide messages, and in the end the store has counted what they cost.
func TestMeterLeased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake()
		store.delay = time.Millisecond
		rule := perDay(100_000)
		rule.Lease = time.Second
		fillLease(t, limiter, rule.Limit(nil))
		m := metered(t, limiter, rule.Limit(nil))
		charge(t, m, 300, time.Millisecond, 2)
		m.Close()
		ok(t, limiter.Close())
		wantLeft(t, limiter, rule.Limit(nil), 100_000-150-600)
	})
}

// Other limits of the call are settled by Close, and permits returned, also after a refusal.
// What Take alone has charged is settled at what Close is told, also after a refusal; what was
// used of others stays.
func TestMeterSettlesOthers(t *testing.T) {
	t.Parallel()
	permits := &runtime.Rule{Name: "p", Algorithm: runtime.Concurrency, Window: time.Minute, Max: 2}
	for _, refuse := range []bool{false, true} {
		limiter := inMemory()
		requests := &runtime.Rule{Name: "q", Window: time.Hour, Max: 10}
		tokens := &runtime.Rule{Name: "t", Window: time.Hour, Max: 20}
		d := taken(t, limiter, permits.Limit(nil), requests.Limit(nil).WithCost(3), tokens.Limit(nil).WithCost(4))
		m := limiter.Meter(context.Background(), d, -1, -1, 0)
		ok(t, m.Charge(0, 0, 5))
		if refuse {
			wantError(t, "too much", m.Charge(0, 8, 16), runtime.ErrLimited)
		}
		wantLeft(t, limiter, permits.Limit(nil), 1)
		m.Close(-1, 1, 0)
		for limit, want := range map[*runtime.Rule]int64{permits: 2, requests: 9, tokens: 15} {
			wantLeft(t, limiter, limit.Limit(nil), want)
		}
		same(t, "in flight", map[string]int64{"p": 0}, limiter.Permits())
	}
	m := metered(t, inMemory(), permits.Limit(nil))
	wantError(t, "permits that grow", m.Charge(1), runtime.ErrInvalidLimit)
	m.Close()
}

// A reader ends at the last byte that is paid, in few trips.
func TestMeterReader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 999, 5000, 70_000, 70_001, 200_000} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			limit := perDay(70_000).Limit(nil)
			m := metered(t, limiter, limit)
			r := m.Reader(bytes.NewReader(make([]byte, size)), func(n int) []int64 { return []int64{int64(n)} })
			n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
			if want := min(int64(size), 70_000); n != want || (err != nil) != (size > 70_000) || err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%d of %d bytes, %v", n, size, err)
			}
			ok(t, r.Close())
			ok(t, limiter.Close())
			wantLeft(t, limiter, limit, 70_000-n)
			if trips := store.trips(); trips > 120 {
				t.Errorf("%d bytes in %d trips", size, trips)
			}
		})
	}
}
