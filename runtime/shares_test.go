package runtime_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// shares is the share of a tenant, and its weight.
func shareOf(l runtime.Limit, tenant string, weight int64) runtime.Limit {
	return l.WithShare(runtime.NewKey().AddString(tenant), weight)
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
			rule := &runtime.Rule{Name: "listed", Window: 1000 * time.Hour, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 2, Block: time.Hour, Hold: true}
			for range 7 {
				taken(t, l, shareOf(rule.Limit(nil), "a:b", 2))
			}
			taken(t, l, shareOf(rule.Limit(nil).WithCost(2), "c", 1))
			refused(t, l, shareOf(rule.Limit(nil), "a:b", 2))
			refused(t, l, shareOf(rule.Limit(nil).WithCost(3), "d", 1))
			ok(t, l.Hold(t.Context(), shareOf(rule.Limit(nil), "c", 1), 2*time.Hour)) // everybody, who is no tenant
			tenants, total, err := bridge.LimiterOf(l).Tenants(t.Context(), rule.Limit(nil), 3)
			ok(t, err)
			equal(t, "tenants that have used something", total, 2)
			var names []string
			for i, tenant := range tenants {
				names = append(names, tenant.Name)
				if want := []float64{3.5, 2, 0}[i]; math.Abs(tenant.Used-want) > 0.01 {
					t.Errorf("%s has used %v by weight, want %v", tenant.Name, tenant.Used, want)
				}
				if blocked := tenant.Rest > 50*time.Minute && tenant.Rest <= time.Hour; blocked == (tenant.Name == "c") {
					t.Errorf("%s is blocked for %v", tenant.Name, tenant.Rest)
				}
			}
			equal(t, "tenants", fmt.Sprint(names), "[a%3Ab c d]")
		})
	}
}
