package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
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
