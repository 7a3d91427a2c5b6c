package rateclient_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A farStore is a store that is some time away.
type farStore struct {
	terms.Store
	away time.Duration // half a trip, at least
}

func (s farStore) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(s.away + rand.N(time.Millisecond))
	defer time.Sleep(s.away + rand.N(time.Millisecond))
	return s.Store.Take(ctx, calls)
}

// TestNoneStarves has eight replicas that want more than the limit, of which one has more
// callers, and one is far from Redis. Each is served all the time, whether requests leave
// the window one by one, as after a hold, or all at once, when who is far has few chances.
func TestNoneStarves(t *testing.T) {
	const replicas, window, windows = 8, 10 * time.Second, 20
	for _, c := range []struct {
		evenly  bool
		most    int64
		away    time.Duration
		callers int // of the first replica
		least   int // that each is served, of about 250, or 170 beside one with many callers
	}{
		{true, 100, 0, 3, 125}, {true, 100, 0, 30, 125},
		{true, 100, 10 * time.Millisecond, 3, 150}, {true, 100, 10 * time.Millisecond, 30, 110},
		{true, 100, 50 * time.Millisecond, 3, 60}, {true, 100, 50 * time.Millisecond, 30, 30},
		{true, 1000, 10 * time.Millisecond, 30, 400}, {true, 1000, 20 * time.Millisecond, 30, 270}, // of 1000, in fewer windows
		{false, 100, 0, 3, 125}, {false, 100, 0, 30, 85},
		{false, 100, 10 * time.Millisecond, 3, 50}, {false, 100, 10 * time.Millisecond, 30, 50},
		{false, 100, 50 * time.Millisecond, 3, 1}, {false, 100, 50 * time.Millisecond, 30, 1},
	} {
		t.Run(fmt.Sprint(c.evenly, c.most, c.away, c.callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := runtime.NewMemoryStore(runtime.WithClock(time.Now)) // like Redis: as of the decision
				limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: window, Max: c.most}, Margin: -1}}
				ctx, cancel := context.WithCancel(t.Context())
				refuse := c.evenly
				var mu sync.Mutex
				var served [replicas]int
				var wg sync.WaitGroup
				for i := range replicas {
					store, callers := farStore{Store: rawstore.Wrap(shared).Store}, int(3*max(1, c.most/150))
					switch i {
					case 0:
						callers = c.callers
					case replicas - 1:
						store.away = c.away
					}
					s := &service{answer: func(*http.Request) (int, map[string]string) {
						time.Sleep(time.Millisecond + rand.N(49*time.Millisecond))
						mu.Lock()
						defer mu.Unlock()
						if refuse {
							refuse = false
							return 429, map[string]string{"Retry-After": "1"}
						}
						served[i]++
						return 200, nil
					}}
					transport := newTransport(t, s, rawstore.New(store, shared), rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour})
					ask(ctx, &wg, callers, transport)
				}
				long := windows * window
				if c.most == 1000 {
					long = 8 * window
				}
				if c.least == 1 { // so seldom is it served that it takes longer to be sure
					long *= 4
				}
				time.Sleep(long)
				cancel()
				wg.Wait()
				t.Logf("served %v", served)
				if slices.Min(served[:]) < c.least {
					t.Errorf("replicas were served %v times, want at least %d", served, c.least)
				}
			})
		})
	}
}
