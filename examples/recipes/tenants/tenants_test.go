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
		client, err := NewClient(limiter, "provider.test", p)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		ask := func(tenant Tenant) error {
			r, _ := http.NewRequestWithContext(For(ctx, tenant), http.MethodGet, "http://provider.test/v1", nil)
			resp, err := client.Do(r)
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		var all sync.WaitGroup
		repeat := func(tenant Tenant, callers int) {
			for range callers {
				all.Go(func() {
					for ctx.Err() == nil {
						if ask(tenant) != nil {
							time.Sleep(50 * time.Millisecond)
						}
					}
				})
			}
		}
		repeat(Tenant{"flood", 1}, 100)
		repeat(Tenant{"double", 2}, 10)
		longest := time.Duration(0)
		for ctx.Err() == nil {
			begin := time.Now()
			if err := ask(Tenant{"quiet", 1}); err != nil && ctx.Err() == nil {
				t.Errorf("the quiet tenant: %v", err)
			}
			if ctx.Err() == nil {
				longest = max(longest, time.Since(begin))
			}
			time.Sleep(200 * time.Millisecond)
		}
		all.Wait()
		_ = limiter.Close()
		t.Logf("served %v, the quiet one waited for up to %v", p.served, longest)
		if longest > 200*time.Millisecond || p.served["quiet"] < 100 {
			t.Errorf("the quiet tenant was served %d times, and waited for up to %v", p.served["quiet"], longest)
		}
		if total := p.served["quiet"] + p.served["flood"] + p.served["double"]; total < 30*48 || total > 30*50+20 {
			t.Errorf("%d requests were sent in 30 seconds", total)
		}
		if f, d := p.served["flood"], p.served["double"]; d < f*18/10 || d > f*22/10 {
			t.Errorf("%d requests of weight 1 and %d of weight 2", f, d)
		}
	})
}
