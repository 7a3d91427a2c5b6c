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

// Whatever a message costs and however many calls run, they use all of a budget but what is
// less than a message, and never more; and then nothing is held.
func TestMeterUsesAll(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		for _, calls := range []int{1, 2, 8} {
			for _, cost := range []int64{1, 2, 7, 100} {
				t.Run(fmt.Sprint(algorithm, calls, "x", cost), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						limiter := inMemory()
						rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: 300 * 24 * time.Hour, Max: 2000}
						var sum atomic.Int64
						concurrently(calls, func(int) {
							for n := int64(1); n > 0; { // is patient
								d, err := limiter.Take(context.Background(), rule.Limit(nil))
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
							t.Errorf("%d used", got)
						}
						wantLeft(t, limiter, rule.Limit(nil), 2000-sum.Load())
					})
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
			var costs, sums []int64
			for i := range 1 + random.IntN(3) {
				rule := &runtime.Rule{Name: fmt.Sprint("r", i), Algorithm: algorithms[random.IntN(3)], Window: 300 * 24 * time.Hour, Max: 50 + random.Int64N(500)}
				limits, sums = append(limits, rule.Limit(key("k"))), append(sums, 0)
				costs = append(costs, 1+random.Int64N(9))
			}
			m := metered(t, limiter, limits...)
			for {
				for i := range costs {
					costs[i] = random.Int64N(10)
				}
				if err := m.Charge(costs...); err != nil {
					break
				}
				for i := range costs {
					sums[i] += costs[i]
				}
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			}
			m.Close()
			for i, limit := range limits {
				if got := limit.WithCost(1); left(t, limiter, got) != limitMax(limiter, t, limit)-sums[i] {
					t.Fatalf("limit %d has %d left of %d, and %d were used", i, left(t, limiter, got), limitMax(limiter, t, limit), sums[i])
				}
			}
		}
	})
}

// limitMax returns the max of a limit.
func limitMax(l *runtime.Limiter, t *testing.T, limit runtime.Limit) int64 {
	d, err := l.Peek(context.Background(), limit)
	ok(t, err)
	return d.Limit
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
				store := newFake()
				limiter := runtime.New(store, quiet)
				var all []runtime.Limit
				costs := []int64{3, 50, 1}[:limits]
				for i := range limits {
					rule := &runtime.Rule{Name: fmt.Sprint("r", i), Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 1_000_000_000}
					all = append(all, rule.Limit(nil))
				}
				m := metered(t, limiter, all...)
				for range test.messages {
					ok(t, m.Charge(costs...))
					time.Sleep(test.pause)
				}
				m.Close()
				ok(t, limiter.Close())
				trips := float64(store.trips()) / float64(test.messages)
				t.Logf("%d limits, every %v: %.3f trips a message", limits, test.pause, trips)
				if trips > test.most*float64(limits) {
					t.Errorf("%.3f trips a message", trips)
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
		limiter := inMemory()
		limit := wide.Limit(nil)
		ctx, cancel := context.WithCancel(context.Background())
		d, err := limiter.Take(ctx, limit)
		ok(t, err)
		m := limiter.Meter(ctx, d, 0)
		for range 100 {
			ok(t, m.Charge(1))
			time.Sleep(time.Millisecond)
		}
		if held := m.Advance(0); held == 0 {
			t.Error("nothing is taken in advance")
		} else {
			wantLeft(t, limiter, limit, 1_000_000-100-held)
		}
		time.Sleep(1001 * time.Millisecond)
		wantLeft(t, limiter, limit, 1_000_000-100)
		if m.Advance(0) != 0 || m.Advance(1) != 0 || m.Advance(-1) != 0 {
			t.Error("something is held")
		}
		ok(t, m.Charge(5))
		cancel()
		if err := m.Charge(1); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		time.Sleep(1001 * time.Millisecond)
		wantLeft(t, limiter, limit, 1_000_000-105)
		m.Close()
		wantLeft(t, limiter, limit, 1_000_000-105)
		if err := limiter.Settle(ctx, d, 0); err != runtime.ErrSettled {
			t.Errorf("the decision is settled again: %v", err)
		}
	})
}

// A second meter of a decision, and one of another limiter's, charge nothing.
// Each limit gives back a second after its own trip.
func TestMeterGivesBackInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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

// A waitingStore answers late.
type waitingStore struct {
	runtime.SharedMemory
	wait time.Duration
}

func (s *waitingStore) Take(ctx context.Context, calls []terms.Call) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.wait):
		return s.SharedMemory.Take(ctx, calls)
	}
}

// On a store that bounds nothing a message waits for as long as its call does, and for a second
// more, in which the store may tell what it has taken.
func TestMeterOnSlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &waitingStore{SharedMemory: runtime.SharedMemory{MemoryStore: runtime.NewMemoryStore()}}
		limiter := runtime.New(store, quiet)
		ctx, cancel := context.WithCancel(context.Background())
		m := limiter.Meter(ctx, taken(t, limiter, wide.Limit(nil)), 0)
		store.wait = 3 * time.Second
		ok(t, m.Charge(2))
		store.wait = time.Hour
		time.AfterFunc(2*time.Second, cancel)
		start := time.Now()
		if err := m.Charge(100); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		m.Close()
		store.wait = 0
		wantLeft(t, limiter, wide.Limit(nil), 1_000_000-2)
		ok(t, limiter.Close())
	})
}

func TestMeterOwnsItsDecision(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	d := taken(t, limiter, wide.Limit(nil).WithCost(10))
	m := limiter.Meter(context.Background(), d)
	for other, want := range map[*runtime.Meter]error{
		limiter.Meter(context.Background(), d):    runtime.ErrSettled,
		inMemory().Meter(context.Background(), d): runtime.ErrOtherLimiter,
	} {
		if err := other.Charge(1); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
		other.Close()
	}
	ok(t, m.Charge(5))
	m.Close()
	if err := m.Charge(1); err != runtime.ErrSettled {
		t.Errorf("a closed meter says %v", err)
	}
	wantLeft(t, limiter, wide.Limit(nil), 1_000_000-15)

	twice := []runtime.Limit{wide.Limit(key("2")), (&runtime.Rule{Name: "other", Prefix: wide.Prefix, Window: wide.Window, Max: 9, Algorithm: wide.Algorithm}).Limit(key("2"))}
	if err := limiter.Meter(context.Background(), taken(t, limiter, twice...)).Charge(1); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("two limits of one key: %v", err)
	}
	if err := metered(t, limiter, wide.Limit(nil)).Charge(-1); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("a cost of -1: %v", err)
	}
	free := limiter.Meter(context.Background(), taken(t, limiter))
	ok(t, free.Charge(1, 2, 3))
	free.Close(1)
}

// The failure policy decides about each message as about a call, also if the call began
// without the store, and when it is back it is charged.
func TestMeterWithoutStore(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		for policy, want := range map[runtime.FailurePolicy]int64{runtime.FailOpen: 300, runtime.FailClosed: 0, runtime.FailLocal: 100} {
			synctest.Test(t, func(t *testing.T) {
				store := newFake()
				limiter := runtime.New(store, quiet)
				rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 100, Fail: policy}
				limit := rule.Limit(key("k"))
				store.broken.Store(!begun)
				d, err := limiter.Take(context.Background(), limit)
				if err != nil {
					if policy != runtime.FailClosed || begun {
						t.Fatal(err)
					}
					return
				}
				m := limiter.Meter(context.Background(), d, 0)
				store.broken.Store(true)
				time.Sleep(2 * time.Second) // what was taken in advance is given back
				n := int64(0)
				for ; n < 300 && err == nil; n++ {
					if err = m.Charge(1); err != nil {
						break
					}
				}
				if n != want || policy == runtime.FailClosed && !errors.Is(err, runtime.ErrUnavailable) || policy == runtime.FailLocal && !errors.Is(err, runtime.ErrLimited) {
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
			store := newFake()
			limiter := runtime.New(store, quiet)
			shadow := &runtime.Rule{Name: "s", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 100, Mode: mode}
			rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 5000}
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
			if n := len(runtime.Exceeded(ctx)); n > 0 {
				t.Errorf("%d errors are kept for the call", n)
			}
		})
	}
}

// Observers hear of a refusal once, when it ends the call, and of as much as was charged.
func TestMeterEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen recorder[runtime.DecisionEvent]
		limiter := inMemory(observing(runtime.Observer{Decision: withContext(seen.add)}))
		rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 1000}
		first, second := metered(t, limiter, rule.Limit(nil)), metered(t, limiter, rule.Limit(nil))
		for range 100 {
			ok(t, first.Charge(1))
			time.Sleep(time.Millisecond)
		}
		ok(t, second.Charge(895-first.Advance(0))) // so that a piece is refused
		used(t, first, 0, 1)
		refusals := 0
		for _, ev := range seen.all() {
			if ev.Verdict == runtime.VerdictDenied {
				refusals++
			}
		}
		if last := seen.all()[len(seen.all())-1]; refusals != 1 || last.Verdict != runtime.VerdictDenied {
			t.Errorf("%d refusals are told: %+v", refusals, seen.all())
		}
	})
}

// What holds at a trip decides: overrides, the kill switch, and the process's cap not at all.
func TestMeterFollowsOverrides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		on := atomic.Bool{}
		on.Store(true)
		limiter, b := following(t, time.Second, runtime.WithEnabled(on.Load), runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: 24 * time.Hour, Max: 3}))
		rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 100}
		limiter.Register(rule)
		m := metered(t, limiter, rule.Limit(nil))
		for range 100 {
			ok(t, m.Charge(1))
			time.Sleep(20 * time.Millisecond)
		}
		b.put(one(runtime.Override{Max: new(int64(150))}))
		for range 50 {
			ok(t, m.Charge(1))
		}
		on.Store(false)
		for range 50 {
			ok(t, m.Charge(1))
		}
		on.Store(true)
		b.put(one(runtime.Override{Enabled: new(false)}))
		for range 50 {
			ok(t, m.Charge(1))
		}
		b.put(one(runtime.Override{Mode: new(runtime.ModeShadow)}))
		for range 50 {
			ok(t, m.Charge(1))
		}
		b.put(one(runtime.Override{Max: new(int64(160))}))
		equal(t, "passed under the last override", used(t, m, 0, 1), 10)
		m.Close()
	})
}

// A rule with a Block begins it only when a message has no room, and then the call ends.
func TestMeterWithBlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 100, Block: 24 * time.Hour}
		m, other := metered(t, limiter, rule.Limit(nil)), metered(t, limiter, rule.Limit(nil))
		ok(t, other.Charge(49))
		equal(t, "passed", used(t, m, time.Millisecond, 1), 51)
		if d, _ := denied(t, limiter, rule.Limit(nil)); !d.Blocked {
			t.Error("the caller is not blocked")
		}
		m.Close()
	})
}

// A rule with a Wait lets a message wait for room. A queue gives each message its turn.
func TestMeterWaits(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[runtime.Algorithm]time.Duration{runtime.TokenBucket: 90 * time.Second, runtime.LeakyBucket: 99 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: time.Second, Max: 1, Burst: 10, Wait: 5 * time.Second}
			began := time.Now()
			m := metered(t, limiter, rule.Limit(nil))
			for range 100 {
				ok(t, m.Charge(1))
			}
			m.Close()
			if took := time.Since(began); took < want-2*time.Second || took > want+2*time.Second {
				t.Errorf("%v: 100 messages took %v, want %v", algorithm, took, want)
			}
		})
	}
}

// A lease may decide messages, and in the end the store has counted what they cost.
func TestMeterLeased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newFake()
		store.delay = time.Millisecond
		limiter := runtime.New(store, quiet)
		rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Lease: time.Second, Max: 100_000}
		fillLease(t, limiter, rule.Limit(nil))
		m := metered(t, limiter, rule.Limit(nil))
		for range 300 {
			ok(t, m.Charge(2))
			time.Sleep(time.Millisecond)
		}
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
	for _, refuse := range []bool{false, true} {
		limiter := inMemory()
		permits := &runtime.Rule{Name: "p", Algorithm: runtime.Concurrency, Window: time.Minute, Max: 2}
		requests := &runtime.Rule{Name: "q", Window: time.Hour, Max: 10}
		tokens := &runtime.Rule{Name: "t", Window: time.Hour, Max: 20}
		d := taken(t, limiter, permits.Limit(nil), requests.Limit(nil).WithCost(3), tokens.Limit(nil).WithCost(4))
		m := limiter.Meter(context.Background(), d, -1, -1, 0)
		ok(t, m.Charge(0, 0, 5))
		if refuse {
			if err := m.Charge(0, 8, 16); !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
		}
		wantLeft(t, limiter, permits.Limit(nil), 1)
		m.Close(-1, 1, 0)
		wantLeft(t, limiter, permits.Limit(nil), 2)
		wantLeft(t, limiter, requests.Limit(nil), 9)
		wantLeft(t, limiter, tokens.Limit(nil), 15)
		same(t, "in flight", map[string]int64{"p": 0}, limiter.Permits())
	}
	m := metered(t, inMemory(), (&runtime.Rule{Name: "p", Algorithm: runtime.Concurrency, Window: time.Minute, Max: 9}).Limit(nil))
	if err := m.Charge(1); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("permits grow: %v", err)
	}
	m.Close()
}

// A reader ends at the last byte that is paid, in few trips.
func TestMeterReader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 999, 5000, 70_000, 70_001, 200_000} {
		synctest.Test(t, func(t *testing.T) {
			store := newFake()
			limiter := runtime.New(store, quiet)
			rule := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 70_000}
			m := metered(t, limiter, rule.Limit(nil))
			r := m.Reader(bytes.NewReader(make([]byte, size)), func(n int) []int64 { return []int64{int64(n)} })
			n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
			if want := min(int64(size), 70_000); n != want || (err != nil) != (size > 70_000) || err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%d of %d bytes, %v", n, size, err)
			}
			ok(t, r.Close())
			ok(t, limiter.Close())
			wantLeft(t, limiter, rule.Limit(nil), 70_000-n)
			if trips := store.trips(); trips > 120 {
				t.Errorf("%d bytes in %d trips", size, trips)
			}
		})
	}
}

// To charge what is paid in advance allocates nothing.
func TestMeterAllocs(t *testing.T) {
	limiter := inMemory()
	d := taken(t, limiter, wide.Limit(nil).WithCost(100_000))
	m := limiter.Meter(context.Background(), d, 0)
	defer m.Close()
	if n := fewestAllocs(func() { ok(t, m.Charge(1)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
