package rateclient_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestHalvedPeerIsUsed has a peer that counts a rolling window halve its limit, and say with
// each answer what remains and when all is back: the replicas learn that, use what is left, and
// are not refused any more.
func TestHalvedPeerIsUsed(t *testing.T) {
	for _, callers := range []int{1, 3} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const window, most, replicas = 10 * time.Second, 100, 8
				p := &strictpeer.Peer{Max: most, Window: window, Admits: strictpeer.Rolling}
				way := func() { time.Sleep(time.Millisecond + rand.N(49*time.Millisecond)) }
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				store := runtime.NewMemoryStore(runtime.WithClock(time.Now))
				for range replicas {
					s := &service{answer: func(*http.Request) (int, map[string]string) {
						way()
						defer way()
						at, ok := p.Arrive()
						max, _ := p.Limit()
						status := 200
						if !ok {
							status = 429
						}
						return status, map[string]string{
							"RateLimit-Policy": fmt.Sprintf(`"a";q=%d;w=10`, max),
							"RateLimit":        fmt.Sprintf(`"a";r=%d;t=10`, p.Left(at)),
						}
					}}
					transport := newTransport(t, s, rawstore.New(farStore{Store: rawstore.Wrap(store).Store}, store), rateclient.Peer{Pattern: "a.test/", Wait: time.Hour, Limits: []rateclient.PeerLimit{{
						Rule: runtime.Rule{Name: "peer", Window: window, Max: most}}}})
					ask(ctx, &wg, callers, transport)
				}
				time.Sleep(2*window + window/2)
				p.SetMax(most / 2)
				time.Sleep(2 * window) // what was admitted before leaves the window
				before, refused := p.Seen()
				began := time.Now()
				time.Sleep(20 * window)
				events, after := p.Seen()
				t.Logf("refused %d and %d", refused, after-refused)
				used := float64(len(events)-len(before)) / (most / 2 * float64(time.Since(began)) / float64(window))
				cancel()
				wg.Wait()
				t.Logf("%.1f %% used", used*100)
				if after > refused || used < 0.95 {
					t.Errorf("%.1f %% of the limit was used and %d requests refused, want 95 %% and none", used*100, after-refused)
				}
			})
		})
	}
}
