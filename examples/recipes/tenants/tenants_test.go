package tenants

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A provider answers what it is asked, and counts for whom.
type provider struct {
	mu     sync.Mutex
	served map[string]int
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served[r.Context().Value(tenantKey{}).(Tenant).ID]++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestFlood has a tenant ask as often as it can with a hundred callers, another one with twice its weight and
// ten callers, and a third one five times a second. The third hardly waits, and the others divide the rest.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{served: map[string]int{}}
		limiter := runtime.New(runtime.NewMemoryStore())
		defer limiter.Close()
		client, err := NewClient(limiter, "provider.test", p)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		repeat := func(tenant Tenant, callers int, pause time.Duration, longest *time.Duration) {
			for range callers {
				all.Go(func() {
					for ctx.Err() == nil {
						begin := time.Now()
						r, _ := http.NewRequestWithContext(For(ctx, tenant), http.MethodGet, "http://provider.test/v1", nil)
						if resp, err := client.Do(r); err == nil {
							if longest != nil {
								*longest = max(*longest, time.Since(begin))
							}
							_ = resp.Body.Close()
						} else {
							time.Sleep(50 * time.Millisecond)
						}
						time.Sleep(pause)
					}
				})
			}
		}
		var quiet time.Duration
		repeat(Tenant{"flood", 1}, 100, 0, nil)
		repeat(Tenant{"double", 2}, 10, 0, nil)
		repeat(Tenant{"quiet", 1}, 1, 200*time.Millisecond, &quiet)
		all.Wait()
		flood, double, total := p.served["flood"], p.served["double"], p.served["flood"]+p.served["double"]+p.served["quiet"]
		if quiet > 200*time.Millisecond || p.served["quiet"] < 100 || total < 30*48 || total > 30*50+20 || double < flood*18/10 || double > flood*22/10 {
			t.Errorf("served %v, and the quiet one waited for up to %v", p.served, quiet)
		}
	})
}
