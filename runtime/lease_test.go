package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// fillLease makes so many calls that a lease has units for more, and no other is on its way.
func fillLease(t testing.TB, l *runtime.Limiter, limit runtime.Limit) {
	t.Helper()
	for range 150 {
		taken(t, l, limit)
		time.Sleep(300 * time.Microsecond)
	}
	time.Sleep(5 * time.Millisecond)
	if _, units := l.Leases(); units < 20 {
		t.Errorf("%d units are leased", units)
	}
}

// A leaseTest is a limiter that leases from a store a millisecond away.
type leaseTest struct {
	*testing.T
	store   *fakeStore
	limiter *runtime.Limiter
	rule    *runtime.Rule
	limit   runtime.Limit
}

// testLease runs a test in a bubble, of a rule that change may have changed.
func testLease(t *testing.T, change func(*runtime.Rule), test func(*leaseTest), opts ...runtime.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := newFake()
		store.delay = time.Millisecond
		rule := &runtime.Rule{Name: "hot", Algorithm: runtime.SlidingCounter, Window: time.Second, Lease: 100 * time.Millisecond, Max: 10_000}
		if change != nil {
			change(rule)
		}
		l := &leaseTest{t, store, runtime.New(store, append(opts, quiet)...), rule, rule.Limit(key("k"))}
		test(l)
		ok(t, l.limiter.Close())
	})
}

// fill is fillLease, of the test's limit.
func (l *leaseTest) fill() {
	l.Helper()
	fillLease(l, l.limiter, l.limit)
}

// leased makes a call that a lease decides.
func (l *leaseTest) leased() runtime.Decision {
	l.Helper()
	return takenBy(l, l.limiter, rule.SourceLease, l.limit)
}

// units returns how many units are leased when nothing is under way.
func (l *leaseTest) units() int64 {
	synctest.Wait()
	_, units := l.limiter.Leases()
	return units
}

// room returns how much the store has left of a limit.
func (l *leaseTest) room(limit runtime.Limit) int64 {
	l.Helper()
	synctest.Wait()
	return left(l, runtime.New(l.store, quiet), limit)
}

// A key with few calls is decided by the store, each call by itself.
func TestLeaseOfRareKey(t *testing.T) {
	t.Parallel()
	for _, calls := range []time.Duration{1, 2, 3} { // in the time of a lease
		testLease(t, nil, func(l *leaseTest) {
			for i := range int64(50) {
				takenBy(l, l.limiter, rule.SourceStore, l.limit)
				equal(l, "trips", l.store.takes.Load(), i+1)
				time.Sleep(l.rule.Lease/calls - time.Millisecond)
			}
		})
	}
}

// A hot key is decided by leases, nearly always without a trip; nothing is lost.
func TestLeaseOfHotKey(t *testing.T) {
	t.Parallel()
	testLease(t, nil, func(l *leaseTest) {
		l.fill()
		trips, calls, leased := l.store.takes.Load(), 0, 0
		for begin := time.Now(); time.Since(begin) < 20*l.rule.Lease; time.Sleep(time.Millisecond) {
			d := taken(l, l.limiter, l.limit)
			calls++
			if d.Source != rule.SourceLease {
				continue
			}
			leased++
			if d.Rule != "hot" || d.Limit != l.rule.Max || d.Remaining <= 0 || d.Remaining >= l.rule.Max || d.ResetAfter <= 0 || d.ResetAfter > 2*l.rule.Window {
				l.Errorf("got %+v", d)
			}
		}
		if trips = l.store.takes.Load() - trips; leased < calls*95/100 || trips > 60 {
			l.Errorf("%d of %d calls by leases, in %d trips", leased, calls, trips)
		}
	})
}

// Units are used in the lease's time only, which runs from before they were asked for,
// and what is left goes back.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*leaseTest){
		"closed": func(l *leaseTest) { ok(l, l.limiter.Close()) },
		"over":   func(l *leaseTest) { time.Sleep(l.rule.Lease) },
		"reset":  func(l *leaseTest) { ok(l, l.limiter.Reset(l.Context(), l.limit)) },
	} {
		testLease(t, nil, func(l *leaseTest) {
			l.fill()
			l.leased()
			used, units := int64(151), l.units()
			equal(l, "left beside units", l.room(l.limit), l.rule.Max-used-units)
			wantLeft(l, l.limiter, l.limit, l.rule.Max-used)
			end(l)
			if name == "reset" {
				used = 0
			}
			equal(l, name+": units", l.units(), 0)
			equal(l, name+": left", l.room(l.limit), l.rule.Max-used)
			takenBy(l, l.limiter, rule.SourceStore, l.limit)
		})
	}
}

// What a call of a lease gives back goes into the lease, once, and to the store when
// the lease has ended. What it cost beyond its reservation is charged to the store.
func TestLeaseSettle(t *testing.T) {
	t.Parallel()
	testLease(t, nil, func(l *leaseTest) {
		l.limit = l.limit.WithCost(2)
		l.fill()
		for _, c := range []struct {
			name               string
			after              time.Duration
			settle             func(runtime.Decision)
			units, room, trips int64
		}{
			{"refunded", 0, func(d runtime.Decision) {
				refunded(l, l.limiter, d)
				wantError(l, "a second refund", l.limiter.Refund(l.Context(), d), runtime.ErrSettled)
			}, 2, 0, 0},
			{"settled later", 0, func(d runtime.Decision) { l.limiter.SettleLater(l.Context(), d, 1) }, 1, 0, 0},
			{"settled at 7", 0, func(d runtime.Decision) { settled(l, l.limiter, d, 7) }, 0, -5, 1},
			{"refunded late", 2 * l.rule.Lease, func(d runtime.Decision) { refunded(l, l.limiter, d) }, 0, 2, 1},
		} {
			d := l.leased()
			time.Sleep(c.after)
			units, room, trips := l.units(), l.room(l.limit), l.store.settles.Load()
			c.settle(d)
			time.Sleep(2 * time.Millisecond)
			same(l, c.name+": units, left in the store and trips",
				[]int64{units + c.units, room + c.room, trips + c.trips}, []int64{l.units(), l.room(l.limit), l.store.settles.Load()})
		}
	})
}

// All limits of a call are charged or none, whether by a lease or by the store.
func TestLeaseBesideOthers(t *testing.T) {
	t.Parallel()
	testLease(t, nil, func(l *leaseTest) {
		other := (&runtime.Rule{Name: "other", Window: time.Hour, Max: 3}).Limit(key("u"))
		l.fill()
		units := l.units()
		var last runtime.Decision
		for i := range int64(3) {
			last = takenBy(l, l.limiter, rule.SourceStore, other, l.limit)
			equal(l, "decided by the limit of", last.Rule, "other")
			equal(l, "units", l.units(), units-i-1)
		}
		for range 3 {
			d, _ := refused(l, l.limiter, other, l.limit)
			equal(l, "refused by the limit of", d.Rule, "other")
			equal(l, "units after a refusal", l.units(), units-3)
		}
		refunded(l, l.limiter, last)
		equal(l, "units after a refund", l.units(), units-2)
		equal(l, "left of the other limit", l.room(other), 1)
		for i, o := range l.limiter.TakeEach(l.Context(), l.limit, other, l.limit, other) {
			want := []rule.Source{rule.SourceLease, rule.SourceStore}[i%2]
			if (o.Err == nil) != (i != 3) || o.Source != want {
				l.Errorf("outcome %d: got %+v", i, o)
			}
		}
	})
}

// While the store is away units are used up; then the failure policy decides.
func TestLeaseFailures(t *testing.T) {
	t.Parallel()
	for policy, admits := range map[runtime.FailurePolicy]bool{runtime.FailOpen: true, runtime.FailClosed: false, runtime.FailLocal: true} {
		testLease(t, func(r *runtime.Rule) { r.Fail = policy }, func(l *leaseTest) {
			other := (&runtime.Rule{Name: "other", Window: time.Hour, Max: 1000, Fail: policy}).Limit(key("u"))
			l.fill()
			l.store.broken.Store(true)
			units := l.units()
			if admits {
				err := l.limiter.Refund(l.Context(), taken(l, l.limiter, l.limit, other))
				if policy == runtime.FailLocal { // which gives nothing back to the lease
					ok(l, err)
					units--
				}
			} else {
				refusedAs(l, l.limiter, runtime.ErrUnavailable, l.limit, other)
			}
			for range units {
				l.leased()
			}
			d, err := l.limiter.Take(l.Context(), l.limit)
			if (err == nil) != admits || d.Source == rule.SourceLease || d.Source == rule.SourceStore {
				l.Errorf("%v: without units: got %+v, %v", policy, d, err)
			}
		})
	}
}

// A call that a lease decides allocates nothing.
func TestLeaseAllocates(t *testing.T) {
	for _, o := range []*observe.Observer{nil, {Decision: func(context.Context, observe.DecisionEvent) {}}} {
		testLease(t, func(r *runtime.Rule) {
			r.Algorithm, r.Max, r.Lease = runtime.TokenBucket, 1_000_000, 500*time.Millisecond
		}, func(l *leaseTest) {
			for range 3000 {
				_, _ = l.limiter.Take(l.Context(), l.limit)
				time.Sleep(10 * time.Microsecond)
			}
			time.Sleep(5 * time.Millisecond)
			least := 1e9
			for range 5 {
				least = min(least, testing.AllocsPerRun(100, func() {
					if d, err := l.limiter.Take(context.Background(), l.limit); err != nil || d.Source != rule.SourceLease {
						l.Errorf("got %+v, %v", d, err)
					}
				}))
			}
			equal(l, "allocations", least, 0)
		}, runtime.WithObserver(o))
	}
}

// TestLeaseAtTheEnd wants what leases have not used when a period ends to be given back before,
// since its count is final then: a kept count is that of the calls.
func TestLeaseAtTheEnd(t *testing.T) {
	t.Parallel()
	for lease := 2 * time.Millisecond; lease <= time.Second; lease *= 3 {
		for _, every := range []time.Duration{100 * time.Microsecond, 300 * time.Microsecond, 700 * time.Microsecond} {
			testLease(t, func(r *runtime.Rule) {
				*r = runtime.Rule{Name: "hot", Algorithm: runtime.FixedWindow, Period: rule.Day, Keep: 1, Lease: lease, Max: 1_000_000}
			}, func(l *leaseTest) {
				l.store.settle = func(ctx context.Context, charges []terms.Charge) error {
					time.Sleep(l.store.delay)
					return l.store.engine.Settle(ctx, charges)
				}
				midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
				time.Sleep(time.Until(midnight) - 700*time.Millisecond)
				calls := int64(0)
				for ; time.Until(midnight) > -100*time.Millisecond; calls++ {
					taken(l, l.limiter, l.limit)
					time.Sleep(every)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				usages, err := l.limiter.Usage(l.Context(), l.limit)
				ok(l, err)
				if used := usages[0].Limit - usages[0].Remaining; usages[0].Past[0].Used+used != calls {
					l.Errorf("lease %v, a call every %v: %d and %d are used by %d calls", lease, every, usages[0].Past[0].Used, used, calls)
				}
			})
		}
	}
}
