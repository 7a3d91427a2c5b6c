// Package quotas limits tenants by what they have paid for: the plans are in a
// database, and so are the exceptions for single tenants.
package quotas

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rule"
)

//go:generate go tool rategen

// A Tenant is who calls, as the authentication has found out.
type Tenant struct {
	ID      string
	PerHour int64 // what the plan allows
}

// Reports is the service.
type Reports interface {
	// Export returns a report.
	//
	//ratelimit:key=#tenant.ID window=1h max=#tenant.PerHour name=reports.export usage=on
	Export(ctx context.Context, tenant Tenant, report string) ([]byte, error)
}

// Plans reads tenants from a database and remembers them for a while.
type Plans struct {
	load func(ctx context.Context, id string) (Tenant, error)
	ttl  time.Duration
	free int64 // an hour, for tenants that the database has not told of yet

	mu    sync.Mutex
	known map[string]plan
}

type plan struct {
	tenant Tenant
	until  time.Time
}

// maxPlans bounds the memory: a caller may come with ever new names.
const maxPlans = 100_000

// NewPlans returns plans that load reads, each of which is remembered for ttl.
func NewPlans(load func(ctx context.Context, id string) (Tenant, error), ttl time.Duration, free int64) *Plans {
	return &Plans{load: load, ttl: ttl, free: free, known: make(map[string]plan)}
}

// Tenant returns a tenant. While the database gives no answer it is what it was
// last, or one of the free plan: a limit must not fail with the database.
func (p *Plans) Tenant(ctx context.Context, id string) Tenant {
	p.mu.Lock()
	known, is := p.known[id]
	p.mu.Unlock()
	if is && time.Now().Before(known.until) {
		return known.tenant
	}
	tenant, err := p.load(ctx, id)
	if err != nil && is {
		tenant = known.tenant
	} else if err != nil {
		tenant = Tenant{ID: id, PerHour: p.free}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxPlans && !is {
		clear(p.known)
	}
	p.known[id] = plan{tenant, time.Now().Add(p.ttl)}
	return tenant
}

// Left returns a handler that tells tenants what is left of their quotas, as JSON and as
// the fields RateLimit-Policy and RateLimit.
func Left(reports *RateLimitedReports, tenantOf func(*http.Request) Tenant) http.Handler {
	return ratehttp.Usage(func(r *http.Request) ([]runtime.Usage, error) {
		return reports.ExportUsage(r.Context(), tenantOf(r))
	})
}

// Exceptions returns a source of overrides for single tenants: load returns how
// much each is admitted an hour whatever its plan says, 0 for one that is blocked.
func Exceptions(load func(ctx context.Context) (map[string]int64, error)) runtime.OverrideSource {
	return runtime.OverrideFunc(func(ctx context.Context) (runtime.Overrides, error) {
		quotas, err := load(ctx)
		if err != nil {
			return runtime.Overrides{}, err // the last ones stay in force
		}
		keys := make(map[string]rule.KeyOverride, len(quotas))
		for id, perHour := range quotas {
			key := runtime.NewKey().AddString(id).String() // escaped
			keys[strings.ReplaceAll(key, "*", "%2A")] = rule.KeyOverride{Max: &perHour}
		}
		return runtime.Overrides{Rules: map[string]rule.Override{"reports.export": {Keys: keys}}}, nil
	})
}
