package rateclient_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestPanickingFunctions wants a request whose Cost, Key or Share panics to fail, and nothing to
// be left of it: neither in a gauge nor in a line.
func TestPanickingFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		var waiting, panics atomic.Int64
		limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 10 * time.Second, Max: 1}, Margin: -1,
			Cost: func(r *http.Request) int64 {
				if r.URL.RawQuery == "later" && panics.Add(1) > 1 || r.URL.RawQuery == "cost" {
					panic("private")
				}
				return 1
			},
			Key: func(r *http.Request, _ *runtime.Key) {
				if r.URL.RawQuery == "key" {
					panic("private")
				}
			}}}
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour},
			runtime.WithObserver(&observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
				waiting.Add(-1)
				if ev.Waiting {
					waiting.Add(2)
				}
			}}))
		if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, query := range []string{"cost", "key", "later"} {
			wg.Go(func() {
				if _, err := get(t.Context(), transport, "http://a.test/?"+query); err == nil || !strings.Contains(err.Error(), "has panicked") || strings.Contains(err.Error(), "private") {
					t.Errorf("%s: %v", query, err)
				}
			})
			synctest.Wait()
		}
		wg.Go(func() {
			if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if waiting.Load() != 0 || s.seen() != 2 {
			t.Errorf("%d wait, %d were sent", waiting.Load(), s.seen())
		}
	})
}

// TestBurst wants the burst of a bucket to leave room for what drains while requests are on
// their way: a peer with the same bucket refuses none.
func TestBurst(t *testing.T) {
	for _, algorithm := range []runtime.Algorithm{runtime.TokenBucket, runtime.LeakyBucket} {
		synctest.Test(t, func(t *testing.T) {
			const most, burst, margin = 100, 20, 500 * time.Millisecond
			p := &strictpeer.Peer{Max: most, Burst: burst, Window: 10 * time.Second, Admits: strictpeer.Bucket}
			var sent atomic.Int64
			next := roundTripper(func(r *http.Request) (*http.Response, error) {
				n := sent.Add(1)
				if n <= burst {
					time.Sleep(margin) // so that what drains meanwhile comes first
				} else if n > burst+5 {
					time.Sleep(rand.N(margin))
				}
				_, _ = p.Arrive()
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
			})
			limiter := runtime.New(runtime.NewMemoryStore())
			defer limiter.Close()
			limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 10 * time.Second, Max: most, Burst: burst, Algorithm: algorithm}, Margin: margin}}
			transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Limits: limits, Wait: time.Hour}}, rateclient.WithNext(next))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 500 {
				wg.Go(func() {
					if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
						t.Error(err)
					}
				})
			}
			began := time.Now()
			wg.Wait()
			if _, refused := p.Seen(); refused > 0 || time.Since(began) > 53*time.Second {
				t.Errorf("%v: %d of 500 were refused in %v", algorithm, refused, time.Since(began))
			}
		})
	}
}
