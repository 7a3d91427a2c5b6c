package runtime_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// shares is the share of a tenant, and its weight.
func shareOf(l runtime.Limit, tenant string, weight int64) runtime.Limit {
	return l.WithShare(runtime.NewKey().AddString(tenant), weight)
}

// TestShares has tenants who ask for more or less than their share of a limit, by turns, for twenty
// windows, and wants nothing to idle, nobody to starve and the others to get as much as their weight says.
func TestShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "shares", Window: time.Second, Max: 500, Burst: 100, Algorithm: runtime.TokenBucket, Headroom: -1}
		l := runtime.New(runtime.NewMemoryStore(), quiet)
		tenants := []struct {
			name        string
			every       time.Duration // between its calls
			weight      int64
			least, most int64 // admitted in a window
		}{
			{"loud", time.Millisecond, 1, 112, 122},
			{"busy", 5 * time.Millisecond, 1, 112, 122},
			{"double", 2 * time.Millisecond, 2, 224, 244},
			{"quiet", 25 * time.Millisecond, 1, 40, 40},
		}
		const first, last = 3, 20 // windows that count
		admitted := make([]int64, len(tenants))
		begin := time.Now()
		for time.Since(begin) < last*time.Second {
			passed := time.Since(begin)
			for i, tenant := range tenants {
				if passed%tenant.every == 0 {
					_, err := l.Take(t.Context(), shareOf(rule.Limit(nil), tenant.name, tenant.weight))
					if err == nil && passed >= first*time.Second {
						admitted[i]++
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
		total := int64(0)
		for i, tenant := range tenants {
			between(t, tenant.name+": admitted in a window", admitted[i]/(last-first), tenant.least, tenant.most)
			total += admitted[i]
		}
		between(t, "all of them", total, 495*(last-first), 500*(last-first)+100)
	})
}

// TestShareRefunds wants what is given back not to count as used, and what turned out to cost more to do.
func TestShareRefunds(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "refunded", Window: time.Hour, Max: 40, Algorithm: runtime.TokenBucket, Headroom: 20}
	for name, l := range shareLimiters(t) {
		key := runtime.NewKey().AddString(name)
		limit := func(tenant string) runtime.Limit { return shareOf(rule.Limit(key), tenant, 1) }
		var made []runtime.Decision
		for range 20 { // down to the headroom
			made = append(made, taken(t, l, limit("a")))
		}
		refused(t, l, limit("a"))
		usages, err := l.Usage(t.Context(), limit("a"), limit("b"))
		ok(t, err)
		equal(t, name+": left to a", usages[0].Remaining, 0)
		equal(t, name+": left to b", usages[1].Remaining, 13) // (0 + 20 * 2) / 3
		for _, d := range made {
			ok(t, l.Refund(t.Context(), d))
		}
		d := taken(t, l, limit("b"))
		usages, err = l.Usage(t.Context(), limit("a"), limit("b"))
		ok(t, err)
		between(t, name+": left to a, which has used nothing", usages[0].Remaining, 18, 19) // what is given back is rounded down
		ok(t, l.Settle(t.Context(), d, 25))
		_, err = l.Take(t.Context(), limit("b"))
		limited := new(runtime.LimitedError)
		if !errors.As(err, &limited) {
			t.Fatalf("%s: got %v, want a refusal", name, err)
		}
		between(t, name+": b may retry after", limited.RetryAfter, 9*time.Minute-time.Second, 9*time.Minute+time.Second) // for 6 events
		taken(t, l, limit("a"))
	}
}

// TestInvalidShares wants every limit that divides nothing, or not as its rule says, to be an error.
func TestInvalidShares(t *testing.T) {
	t.Parallel()
	l := runtime.New(runtime.NewMemoryStore(), quiet)
	bucket := runtime.Rule{Name: "bucket", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 2}
	change := func(change func(*runtime.Rule)) *runtime.Rule {
		r := bucket
		change(&r)
		return &r
	}
	share := func(r *runtime.Rule, weight int64) []runtime.Limit {
		return []runtime.Limit{shareOf(r.Limit(nil), "a", weight)}
	}
	for name, limits := range map[string][]runtime.Limit{
		"no share":        {bucket.Limit(nil)},
		"no headroom":     share(change(func(r *runtime.Rule) { r.Headroom = 0 }), 1),
		"weight 0":        share(&bucket, 0),
		"negative weight": share(&bucket, -1),
		"large weight":    share(&bucket, 1<<63-1),
		"over half":       share(change(func(r *runtime.Rule) { r.Headroom = 6 }), 1),
		"over max":        share(change(func(r *runtime.Rule) { r.Burst, r.Headroom = 100, 11 }), 1),
		"burst of 1":      share(change(func(r *runtime.Rule) { r.Burst, r.Headroom = 1, -1 }), 1),
		"negative":        share(change(func(r *runtime.Rule) { r.Headroom = -2 }), 1),
		"log":             share(change(func(r *runtime.Rule) { r.Algorithm = runtime.SlidingLog }), 1),
		"queue":           share(change(func(r *runtime.Rule) { r.Algorithm, r.Wait = runtime.LeakyBucket, time.Second }), 1),
		"lease":           share(change(func(r *runtime.Rule) { r.Lease = 10 * time.Millisecond }), 1),
		"two shares":      {shareOf(bucket.Limit(nil), "a", 1), shareOf(bucket.Limit(nil), "b", 1)},
		"two weights":     {shareOf(bucket.Limit(nil), "a", 1), shareOf(bucket.Limit(nil), "a", 2)},
	} {
		if _, err := l.Take(t.Context(), limits...); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("%s: got %v, want %v", name, err, runtime.ErrInvalidLimit)
		}
	}
	invalid := bucket
	invalid.Invalid = runtime.InvalidRefuse
	_, err := l.Take(t.Context(), invalid.Limit(nil).WithShare(runtime.NewKey().AddInvalid("no tenant"), 1))
	if !errors.Is(err, runtime.ErrInvalidKey) {
		t.Errorf("a share that cannot be built: got %v, want %v", err, runtime.ErrInvalidKey)
	}
	d, err := l.Peek(t.Context(), share(&bucket, 1)...)
	ok(t, err)
	equal(t, "left after all", d.Remaining, 8)
	// Every length of a share is one of its own.
	names := map[string]bool{}
	for n := range 300 {
		limit := shareOf(bucket.Limit(runtime.NewKey().AddString("key")), fmt.Sprintf("%0*d", n+1, 7), 1)
		equal(t, "the key", limit.Key.String(), "key")
		taken(t, l, limit)
		names[limit.Key.String()] = true
		l.Reset(t.Context(), limit)
	}
}

// shareLimiters returns limiters on the stores that divide limits.
func shareLimiters(t *testing.T) map[string]*runtime.Limiter {
	return map[string]*runtime.Limiter{
		"memory": runtime.New(runtime.NewMemoryStore(), quiet),
		"redis":  onRedis(redistest.Start(t).Client(t)),
	}
}

// TestSharesMerge has one trip decide calls of several tenants, of which equal ones are merged, and
// wants what calls one after the other get.
func TestSharesMerge(t *testing.T) {
	t.Parallel()
	limiters := shareLimiters(t)
	rule := &runtime.Rule{Name: "merged", Window: time.Hour, Max: 100, Algorithm: runtime.TokenBucket, Headroom: 40}
	var limits []runtime.Limit
	for i := range 120 {
		limits = append(limits, shareOf(rule.Limit(nil).WithCost(int64(1+i%7/6)), []string{"a", "b", "a"}[i%3], 1))
	}
	want := limiters["memory"].TakeEach(t.Context(), limits...)
	got := limiters["redis"].TakeEach(t.Context(), limits...)
	for i := range limits {
		if got[i].Allowed != want[i].Allowed || got[i].Remaining != want[i].Remaining {
			t.Errorf("call %d: got %+v on redis, %+v in memory", i, got[i], want[i])
		}
	}
}

// TestTenantsAreListed wants operators to see who has used most of a limit by its weight, and who is blocked.
func TestTenantsAreListed(t *testing.T) {
	t.Parallel()
	l := onRedis(redistest.Start(t).Client(t))
	rule := &runtime.Rule{Name: "listed", Window: time.Hour, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 2, Block: time.Minute}
	for range 7 {
		taken(t, l, shareOf(rule.Limit(nil), "a:b", 2))
	}
	taken(t, l, shareOf(rule.Limit(nil).WithCost(2), "c", 1))
	refused(t, l, shareOf(rule.Limit(nil), "a:b", 2))
	refused(t, l, shareOf(rule.Limit(nil).WithCost(3), "d", 1))
	tenants, total, err := bridge.LimiterOf(l).Tenants(t.Context(), rule.Limit(nil), 2)
	ok(t, err)
	equal(t, "tenants that have used something", total, 2)
	var names []string
	for i, tenant := range tenants {
		names = append(names, tenant.Name)
		if want := []float64{3.5, 2, 0}[i]; math.Abs(tenant.Used-want) > 0.01 {
			t.Errorf("%s has used %v by weight, want %v", tenant.Name, tenant.Used, want)
		}
		if blocked := tenant.Rest > 50*time.Second && tenant.Rest <= time.Minute; blocked == (tenant.Name == "c") {
			t.Errorf("%s is blocked for %v", tenant.Name, tenant.Rest)
		}
	}
	equal(t, "tenants", fmt.Sprint(names), "[a%3Ab c d]")
}
