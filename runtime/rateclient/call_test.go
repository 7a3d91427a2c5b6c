package rateclient_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestSettle wants what a request has really cost to be its charge.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		costs []int64
		left  int64 // of 100 tokens, of which 80 were charged
	}{
		{"less", []int64{-1, 30}, 70}, {"nothing", []int64{-1, 0}, 100}, {"more", []int64{-1, 95}, 5},
		{"unknown", []int64{-1, -1}, 20}, {"not said", nil, 20}, {"too many", []int64{-1, 30, 5, 5}, 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, store := new(service), runtime.NewMemoryStore()
				tokens := runtime.Rule{Name: "tokens", Window: time.Hour, Max: 100}
				limits := []rateclient.PeerLimit{
					{Rule: runtime.Rule{Name: "requests", Window: time.Hour, Max: 10}, Margin: -1},
					{Rule: tokens, Margin: -1, Cost: func(*http.Request) int64 { return 80 }},
				}
				transport := newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: limits})
				ctx, call := rateclient.WithCall(t.Context())
				call.Settle(ctx, 0, 0) // before it is admitted
				if _, err := get(ctx, transport, "http://a.test/"); err != nil {
					t.Fatal(err)
				}
				call.Settle(ctx, c.costs...)
				call.Settle(ctx, 0, 0) // again
				synctest.Wait()
				limiter := runtime.New(store)
				tokens.Hold = true
				d, err := limiter.Peek(t.Context(), tokens.Limit(nil))
				if err != nil || d.Remaining != c.left {
					t.Errorf("%d tokens are left, want %d; %v", d.Remaining, c.left, err)
				}
				if _, err := get(ctx, transport, "http://a.test/"); (err == nil) != (c.left >= 80) {
					t.Errorf("the next call: %v", err)
				}
				other, unsent := rateclient.WithCall(context.Background())
				if _, err := get(other, transport, "http://b.test/"); err != nil {
					t.Fatal(err)
				}
				unsent.Settle(other, 1)
				unsent.Answered(other, rateclient.Answer{Refused: true})
			})
		})
	}
}
