package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

func leasedRule() *runtime.Rule {
	return &runtime.Rule{Name: "hot", Algorithm: runtime.SlidingCounter, Window: time.Second, Lease: 100 * time.Millisecond, Max: 10_000}
}

// fillLease makes so many calls that a lease has units for more, and no other is on its way.
func fillLease(t *testing.T, l *runtime.Limiter, limit runtime.Limit) {
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

// takeLeased makes a call that a lease decides.
func takeLeased(t *testing.T, l *runtime.Limiter, limit runtime.Limit) runtime.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), limit)
	if err != nil || d.Source != runtime.SourceLease {
		t.Errorf("got %+v, %v, want one by a lease", d, err)
	}
	return d
}

func leftInStore(t *testing.T, s runtime.Store, limit runtime.Limit) int64 {
	t.Helper()
	d, err := runtime.New(s, quiet).Peek(context.Background(), limit)
	ok(t, err)
	return d.Remaining
}

// leaseTest runs a test in a bubble, with a store and a limiter that is closed.
func leaseTest(t *testing.T, test func(t *testing.T, s *fakeStore, l *runtime.Limiter), opts ...runtime.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.delay = time.Millisecond
		l := runtime.New(s, append(opts, quiet)...)
		test(t, s, l)
		ok(t, l.Close())
	})
}

// A key with few calls is decided by the store, each call by itself.
func TestLeaseOfRareKey(t *testing.T) {
	t.Parallel()
	for _, calls := range []time.Duration{1, 2, 3} { // in the time of a lease
		leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
			rule := leasedRule()
			for i := range int64(50) {
				d, err := l.Take(context.Background(), rule.Limit(nil))
				if err != nil || d.Source != runtime.SourceStore || s.takes.Load() != i+1 {
					t.Errorf("call %d: got %+v, %v after %d trips", i, d, err, s.takes.Load())
				}
				time.Sleep(rule.Lease/calls - time.Millisecond)
			}
		})
	}
}

// A hot key is decided by leases, nearly always without a trip; nothing is lost.
func TestLeaseOfHotKey(t *testing.T) {
	t.Parallel()
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		rule := leasedRule()
		limit := rule.Limit(key("k"))
		fillLease(t, l, limit)
		trips, calls, leased := s.takes.Load(), 0, 0
		for begin := time.Now(); time.Since(begin) < 20*rule.Lease; time.Sleep(time.Millisecond) {
			d := taken(t, l, limit)
			if calls++; d.Source == runtime.SourceLease {
				leased++
				if !d.Allowed || d.Rule != "hot" || d.Limit != rule.Max || d.Remaining <= 0 || d.Remaining >= rule.Max || d.ResetAfter <= 0 || d.ResetAfter > 2*rule.Window {
					t.Errorf("got %+v", d)
				}
			}
		}
		if trips = s.takes.Load() - trips; leased < calls*95/100 || trips > 60 {
			t.Errorf("%d of %d calls by leases, in %d trips", leased, calls, trips)
		}
	})
}

// Units are used in the lease's time only, which runs from before they were asked for,
// and what is left goes back.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for _, close := range []bool{false, true} {
		leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
			rule := leasedRule()
			limit := rule.Limit(key("k"))
			fillLease(t, l, limit)
			takeLeased(t, l, limit)
			used := int64(151)
			_, units := l.Leases()
			if units == 0 || leftInStore(t, s, limit) != rule.Max-used-units {
				t.Fatalf("%d used and %d leased: %d left", used, units, leftInStore(t, s, limit))
			}
			if close {
				ok(t, l.Close())
			} else {
				time.Sleep(rule.Lease)
			}
			synctest.Wait()
			if _, units := l.Leases(); units != 0 || leftInStore(t, s, limit) != rule.Max-used {
				t.Errorf("%d used, %d still leased: %d left", used, units, leftInStore(t, s, limit))
			}
			if d, err := l.Take(context.Background(), limit); err != nil || d.Source != runtime.SourceStore {
				t.Errorf("afterwards: got %+v, %v", d, err)
			}
		})
	}
}

// What a call of a lease gives back goes into the lease, once, and to the store when
// the lease has ended. What it cost beyond its reservation is charged to the store.
func TestLeaseSettle(t *testing.T) {
	t.Parallel()
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		ctx, rule := context.Background(), leasedRule()
		limit := rule.Limit(key("k")).WithCost(2)
		fillLease(t, l, limit)
		// back settles a decision by a lease, and returns how many units there are then
		// more than before it, and how many trips that took.
		back := func(settle func(runtime.Decision)) (units int64, trips int64) {
			d := takeLeased(t, l, limit)
			synctest.Wait()
			_, before := l.Leases()
			trips = s.settles.Load()
			settle(d)
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			_, units = l.Leases()
			return units - before, s.settles.Load() - trips
		}
		units, trips := back(func(d runtime.Decision) {
			refunded(t, l, d)
			if err := l.Refund(ctx, d); !errors.Is(err, runtime.ErrSettled) {
				t.Errorf("a second refund: %v", err)
			}
		})
		if units != 2 || trips != 0 {
			t.Errorf("a refund gave %d units back, in %d trips", units, trips)
		}
		units, trips = back(func(d runtime.Decision) { l.SettleLater(ctx, d, 1) })
		if units != 1 || trips != 0 {
			t.Errorf("settled at 1: %d units came back, in %d trips", units, trips)
		}
		d := takeLeased(t, l, limit)
		synctest.Wait()
		room := leftInStore(t, s, limit)
		if err := l.Settle(ctx, d, 7); err != nil || leftInStore(t, s, limit) != room-5 {
			t.Errorf("settled at 7: %v, %d left of %d", err, leftInStore(t, s, limit), room)
		}
		d = takeLeased(t, l, limit)
		time.Sleep(2 * rule.Lease)
		synctest.Wait()
		settles := s.settles.Load()
		room = leftInStore(t, s, limit)
		if err := l.Refund(ctx, d); err != nil || leftInStore(t, s, limit) != room+2 || s.settles.Load() != settles+1 {
			t.Errorf("a late refund: %v, %d left of %d", err, leftInStore(t, s, limit), room)
		}
	})
}

// All limits of a call are charged or none, whether by a lease or by the store.
func TestLeaseBesideOthers(t *testing.T) {
	t.Parallel()
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		ctx, rule := context.Background(), leasedRule()
		hot := rule.Limit(key("k"))
		other := &runtime.Rule{Name: "other", Window: time.Hour, Max: 3}
		narrow := other.Limit(key("u"))
		fillLease(t, l, hot)
		_, units := l.Leases()
		var last runtime.Decision
		for i := range int64(6) {
			d, err := l.Take(ctx, narrow, hot)
			if (err == nil) != (i < 3) || d.Rule != "other" || err == nil && d.Source != runtime.SourceStore {
				t.Errorf("call %d: got %+v, %v", i, d, err)
			}
			if i < 3 {
				last = d
			}
			if _, now := l.Leases(); now != units-min(i+1, 3) {
				t.Errorf("call %d: %d units, before %d", i, now, units)
			}
		}
		refunded(t, l, last)
		if _, now := l.Leases(); now != units-2 || leftInStore(t, s, narrow) != 1 {
			t.Errorf("after a refund: %d units of %d, %d left of the other", now, units, leftInStore(t, s, narrow))
		}
		for i, o := range l.TakeEach(ctx, hot, narrow, hot, narrow) {
			want := []runtime.Source{runtime.SourceLease, runtime.SourceStore}[i%2]
			if (o.Err == nil) != (i != 3) || o.Source != want {
				t.Errorf("outcome %d: got %+v", i, o)
			}
		}
	})
}

// While the store is away units are used up; then the failure policy decides.
func TestLeaseFailures(t *testing.T) {
	t.Parallel()
	for policy, admits := range map[runtime.FailurePolicy]bool{runtime.FailOpen: true, runtime.FailClosed: false, runtime.FailLocal: true} {
		leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
			rule := leasedRule()
			rule.Fail = policy
			other := &runtime.Rule{Name: "other", Window: time.Hour, Max: 1000, Fail: policy}
			hot, user := rule.Limit(key("k")), other.Limit(key("u"))
			fillLease(t, l, hot)
			s.broken.Store(true)
			_, units := l.Leases()
			d, err := l.Take(context.Background(), hot, user)
			if (err == nil) != admits || err != nil && !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("%v: beside another limit: got %+v, %v", policy, d, err)
			}
			if admits {
				units--
				if err := l.Refund(context.Background(), d); policy == runtime.FailLocal && err != nil {
					t.Errorf("%v: refund: %v", policy, err)
				}
				if policy == runtime.FailOpen {
					units++ // given back
				}
			}
			for i := range units {
				if d, err := l.Take(context.Background(), hot); err != nil || d.Source != runtime.SourceLease {
					t.Errorf("%v: call %d of %d: got %+v, %v", policy, i, units, d, err)
				}
			}
			d, err = l.Take(context.Background(), hot)
			if (err == nil) != admits || d.Source == runtime.SourceLease || d.Source == runtime.SourceStore {
				t.Errorf("%v: without units: got %+v, %v", policy, d, err)
			}
		})
	}
}

// A reset forgets the lease, and a peek knows of it.
func TestLeaseResetAndPeek(t *testing.T) {
	t.Parallel()
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		ctx, rule := context.Background(), leasedRule()
		limit := rule.Limit(key("k"))
		fillLease(t, l, limit)
		_, units := l.Leases()
		wantLeft(t, l, limit, leftInStore(t, s, limit)+units)
		// The rest of the limit goes to somebody else.
		greedy := runtime.New(s.MemoryStore, quiet)
		for range rule.Max {
			_, _ = greedy.Take(ctx, limit)
		}
		if d, err := l.Peek(ctx, limit); err != nil || !d.Allowed || d.RetryAfter != 0 {
			t.Errorf("peek of a limit of which only the lease is left: got %+v, %v", d, err)
		}
		if d, err := l.Peek(ctx, limit.WithCost(units+1)); err != nil || d.Allowed || d.RetryAfter <= 0 {
			t.Errorf("peek at more than the lease: got %+v, %v", d, err)
		}
		ok(t, l.Reset(ctx, limit))
		synctest.Wait()
		if _, units := l.Leases(); units != 0 || leftInStore(t, s, limit) != rule.Max {
			t.Errorf("after a reset: %d units, %d left", units, leftInStore(t, s, limit))
		}
		if d, err := l.Take(ctx, limit); err != nil || d.Source != runtime.SourceStore {
			t.Errorf("after a reset: got %+v, %v", d, err)
		}
	})
}

// Overrides and the kill switch hold for the next call, whatever is leased.
func TestLeaseOverrides(t *testing.T) {
	t.Parallel()
	source := new(board)
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		ctx, rule := context.Background(), leasedRule()
		limit := rule.Limit(key("k"))
		set := func(o runtime.Override) {
			source.set(runtime.Overrides{Rules: map[string]runtime.Override{"hot": o}}, nil)
			time.Sleep(time.Minute)
		}
		take := func() (runtime.Decision, error) { return l.Take(ctx, limit) }
		fillLease(t, l, limit)
		set(runtime.Override{Max: new(int64(0))})
		if d, err := take(); !errors.Is(err, runtime.ErrLimited) || d.Allowed {
			t.Errorf("max 0: got %+v, %v", d, err)
		}
		set(runtime.Override{Max: new(int64(500))})
		for range 20 {
			_, _ = take()
		}
		time.Sleep(2 * time.Millisecond)
		if d := takeLeased(t, l, limit); d.Limit != 500 {
			t.Errorf("max 500: got %+v", d)
		}
		set(runtime.Override{Window: new(100 * time.Millisecond)}) // as long as the lease
		for range 50 {
			if d, err := take(); err == nil && d.Source == runtime.SourceLease {
				t.Fatalf("a lease as long as its window: got %+v, %v", d, err)
			}
		}
		set(runtime.Override{Enabled: new(false)})
		if d, err := take(); err != nil || d.Source != runtime.SourceNone {
			t.Errorf("switched off: got %+v, %v", d, err)
		}
	}, runtime.WithOverrides(source, time.Second))
}

// What was leased before a rule changed admits nobody afterwards.
func TestLeaseOfChangedRule(t *testing.T) {
	t.Parallel()
	source := new(board)
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		rule := leasedRule()
		rule.Window, rule.Lease = time.Minute, 20*time.Second
		limit := rule.Limit(key("k"))
		fillLease(t, l, limit)
		takeLeased(t, l, limit)
		source.put(runtime.Overrides{Rules: map[string]runtime.Override{"hot": {Max: new(int64(9_000))}}})
		if d := taken(t, l, limit); d.Source != runtime.SourceStore || d.Limit != 9_000 {
			t.Errorf("got %+v, want a decision by the store", d)
		}
	}, runtime.WithOverrides(source, time.Second))
}

// Observers and recorders learn of every call.
func TestLeaseEvents(t *testing.T) {
	t.Parallel()
	var sources [10]atomic.Int64
	observer := &runtime.Observer{Decision: func(_ context.Context, e runtime.DecisionEvent) {
		if e.Verdict == runtime.VerdictAdmitted && e.Window == time.Second && e.Max == 10_000 {
			sources[e.Source].Add(1)
		}
	}}
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		limit := leasedRule().Limit(key("k"))
		recorded := 0
		ctx := runtime.WithRecorder(context.Background(), func(e runtime.DecisionEvent) { recorded++ })
		var want [10]int64
		for range 300 {
			d, err := l.Take(ctx, limit)
			ok(t, err)
			want[d.Source]++
		}
		for source, n := range want {
			equal(t, fmt.Sprintf("source %v: events", runtime.Source(source)), sources[source].Load(), n)
		}
		if recorded != 300 || want[runtime.SourceLease] < 100 {
			t.Errorf("%d recorded, %d by leases", recorded, want[runtime.SourceLease])
		}
	}, runtime.WithObserver(observer))
}

// A shadow limit, a wait and a process cap go with leases.
func TestLeaseKinds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runtime.Rule){
		"shadow": func(r *runtime.Rule) { r.Mode = runtime.ModeShadow },
		"wait":   func(r *runtime.Rule) { r.Wait = time.Second },
		"log":    func(r *runtime.Rule) { r.Algorithm = runtime.SlidingLog },
		"bucket": func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket },
		"fixed":  func(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow },
		"empty":  func(r *runtime.Rule) { r.Prefix = "p:" },
	} {
		t.Run(name, func(t *testing.T) {
			rule := leasedRule()
			rule.Max = 400
			change(rule)
			leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
				begin, admitted, leased := time.Now(), 0, 0
				for time.Since(begin) < 2*time.Second {
					d, err := l.Take(context.Background(), rule.Limit(nil))
					if err == nil && (d.Source == runtime.SourceStore || d.Source == runtime.SourceLease) {
						admitted++
					}
					if d.Source == runtime.SourceLease {
						leased++
					}
					time.Sleep(100 * time.Microsecond)
				}
				if leased < 100 || rule.Mode == runtime.ModeEnforce && (admitted < 750 || admitted > 1200) {
					t.Errorf("%d admitted, %d by leases", admitted, leased)
				}
			})
			cap := &runtime.Rule{Name: "process", Window: time.Minute, Max: 150}
			leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
				admitted := 0
				for range 300 {
					if _, err := l.Take(context.Background(), rule.Limit(nil)); err == nil {
						admitted++
					}
				}
				if admitted != 150 {
					t.Errorf("with a process cap of 150: %d admitted", admitted)
				}
			}, runtime.WithProcessCap(cap))
		})
	}
}

// Where a trip takes longer than a lease little is charged in vain, though a bucket
// takes nothing back.
func TestLeaseShorterThanTrip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rule := leasedRule()
		rule.Algorithm, rule.Max, rule.Lease = runtime.TokenBucket, 1_000_000, 10*time.Millisecond
		s := &distantStore{SharedMemory: runtime.SharedMemory{MemoryStore: runtime.NewMemoryStore()}, windows: new(sync.Map), delay: func() time.Duration { return 8 * time.Millisecond }}
		l := runtime.New(s, quiet)
		var admitted atomic.Int64
		concurrently(20, func(int) {
			for range 1000 {
				if _, err := l.Take(context.Background(), rule.Limit(nil)); err == nil {
					admitted.Add(1)
				}
			}
		})
		ok(t, l.Close())
		if n := s.charged.Load(); admitted.Load() != 20_000 || n > 22_500 {
			t.Errorf("%d calls were admitted, and %d charged", admitted.Load(), n)
		}
	})
}

// Callers that try many keys fill no memory, and keep no hot key from its lease.
func TestLeaseTableIsBounded(t *testing.T) {
	t.Parallel()
	leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
		rule := leasedRule()
		hot := rule.Limit(key("hot"))
		for i := range int64(10_000) {
			_, _ = l.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(i)))
		}
		keys, _ := l.Leases()
		if keys > 8192 {
			t.Errorf("%d keys", keys)
		}
		fillLease(t, l, hot)
	})
}

// A call that a lease decides allocates nothing.
func TestLeaseAllocates(t *testing.T) {
	for _, o := range []*runtime.Observer{nil, {Decision: func(context.Context, runtime.DecisionEvent) {}}} {
		leaseTest(t, func(t *testing.T, s *fakeStore, l *runtime.Limiter) {
			rule := leasedRule()
			rule.Algorithm, rule.Max, rule.Lease = runtime.TokenBucket, 1_000_000, 500*time.Millisecond
			limit := rule.Limit(key("k"))
			for range 3000 {
				_, _ = l.Take(context.Background(), limit)
				time.Sleep(10 * time.Microsecond)
			}
			time.Sleep(5 * time.Millisecond)
			least := 1e9
			for range 5 {
				least = min(least, testing.AllocsPerRun(100, func() { takeLeased(t, l, limit) }))
			}
			equal(t, "allocations", least, 0)
		}, runtime.WithObserver(o))
	}
}

// A bucket counts its burst without what drains in a lease.
func TestLeasedBurst(t *testing.T) {
	t.Parallel()
	// A bucket of which a lease would leave nothing is counted without one.
	rule := leasedRule()
	rule.Algorithm, rule.Burst = runtime.TokenBucket, 10
	d, err := runtime.New(runtime.NewMemoryStore()).Take(context.Background(), rule.Limit(nil).WithCost(10))
	if err != nil || d.Limit != 10 {
		t.Errorf("a small burst: got %+v, %v", d, err)
	}
	// A memory store counts as Redis would, and has no leases.
	rule.Burst = 2000
	d, err = runtime.New(runtime.NewMemoryStore()).Take(context.Background(), rule.Limit(nil))
	if err != nil || d.Limit != 1000 {
		t.Errorf("a burst: got %+v, %v", d, err)
	}
}
