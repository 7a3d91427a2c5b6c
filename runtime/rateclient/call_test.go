package rateclient_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestShare wants requests to stop at their share of the limit, and more important ones not
// to wait behind others.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		shares := map[string]float64{"low": 0.8, "high": 1, "none": 0, "nan": math.NaN(), "much": 9, "below": -1}
		limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 10 * time.Second, Max: 10}, Margin: -1,
			Share: func(r *http.Request) float64 { return shares[r.URL.RawQuery] }}}
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour})
		start := time.Now()
		var wg sync.WaitGroup
		send := func(priority string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				if _, err := get(t.Context(), transport, "http://a.test/?"+priority); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 10 { // one a second, of which 8 are low
			send([]string{"low", "high"}[i/8], time.Duration(i)*time.Second)
		}
		for i, priority := range []string{"low", "none", "nan", "below", "low", "high", "much"} {
			send(priority, 9*time.Second+time.Duration(i+1)*time.Millisecond)
		}
		wg.Wait()
		var got []string
		for i, at := range s.arrivals[10:] {
			got = append(got, fmt.Sprint(s.order[10+i], " ", at.Sub(start).Round(10*time.Millisecond)))
		}
		// The 10 leave from 10 s to 19 s. Two of the more important ones have room first. The
		// low ones may go on when 7 are counted, and the lowest when none is.
		want := []string{"high 10s", "much 11s", "low 14s", "low 15s", "none 25s", "nan 35s", "below 45s"}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

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
