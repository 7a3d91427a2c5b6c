// Package tenants divides what one provider allows a service among the service's tenants.
package tenants

import (
	"context"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A Tenant is one for whom the service asks its provider.
type Tenant struct {
	ID     string
	Weight int64 // of its plan
}

type tenantKey struct{}

// For returns a context of requests for a tenant.
func For(ctx context.Context, t Tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, t)
}

// NewClient returns a client that sends at most 50 requests a second to the provider, over all replicas,
// and 20 at once. Requests wait for up to five seconds, those of each tenant in a line of their own.
func NewClient(limiter *runtime.Limiter, host string, next http.RoundTripper) (*http.Client, error) {
	transport, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: host + "/",
		Limits: []rateclient.PeerLimit{{
			Rule:   runtime.Rule{Name: "provider", Window: time.Second, Max: 50, Burst: 20, Algorithm: runtime.TokenBucket, Headroom: -1},
			Tenant: tenantOf,
		}},
		Wait: 5 * time.Second,
	}}, rateclient.WithNext(next))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// tenantOf says for whom a request is. The service's own requests are for nobody.
func tenantOf(r *http.Request, share *runtime.Key) (weight int64) {
	t, ok := r.Context().Value(tenantKey{}).(Tenant)
	if !ok {
		t = Tenant{Weight: 1}
	}
	share.AddString(t.ID)
	return t.Weight
}
