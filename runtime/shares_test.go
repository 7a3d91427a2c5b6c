package runtime_test

import (
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

// TestShareNames has shares of every length, each of which is one of its own and leaves the key as it is.
func TestShareNames(t *testing.T) {
	t.Parallel()
	l := inMemory()
	bucket := &runtime.Rule{Name: "bucket", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 2, Invalid: runtime.InvalidRefuse}
	for n := range 300 {
		limit := shareOf(bucket.Limit(key("key")), fmt.Sprintf("%0*d", n+1, 7), 1)
		equal(t, "the key", limit.Key.String(), "key")
		taken(t, l, limit)
		ok(t, l.Reset(t.Context(), limit))
	}
	refusedAs(t, l, runtime.ErrInvalidKey, bucket.Limit(nil).WithShare(runtime.NewKey().AddInvalid("no tenant"), 1))
}

// TestTenantsAreListed wants operators to see who has used most of a limit by its weight, and who is blocked.
func TestTenantsAreListed(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*runtime.Limiter{"redis": onRedis(redistest.Start(t).Client(t)), "memory": inMemory()} {
		t.Run(name, func(t *testing.T) {
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
		})
	}
}
