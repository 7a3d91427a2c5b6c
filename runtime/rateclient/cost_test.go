package rateclient_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

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
