package rateclient_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A strictPeer counts requests when they arrive, after delays that differ, and refuses
// those above its limit.
type strictPeer struct {
	max    int
	window time.Duration
	admits func(p *strictPeer, now time.Time) bool

	mu      sync.Mutex
	events  []time.Time // that were admitted
	level   float64
	at      time.Time
	refused int
}

func (p *strictPeer) arrive(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.admits(p, now) {
		p.refused++
		return 429
	}
	p.events = append(p.events, now)
	return 200
}

// rolling admits max in any window that ends now.
func rolling(p *strictPeer, now time.Time) bool {
	return len(p.events) < p.max || now.Sub(p.events[len(p.events)-p.max]) >= p.window
}

// fixed admits max in each window, which follow each other from the first request on.
func fixed(p *strictPeer, now time.Time) bool {
	n := 0
	for i := len(p.events) - 1; i >= 0 && p.events[i].Sub(p.events[0])/p.window == now.Sub(p.events[0])/p.window; i-- {
		n++
	}
	return n < p.max
}

// bucket admits max at once, and as much in a window.
func bucket(p *strictPeer, now time.Time) bool {
	p.level = max(0, p.level-now.Sub(p.at).Seconds()/p.window.Seconds()*float64(p.max))
	p.at = now
	if p.level+1 > float64(p.max)+1e-9 {
		return false
	}
	p.level++
	return true
}

// run has 8 replicas with Redis clients of their own send as fast as they may, for some
// windows, and returns how many requests the peer has refused, and which share of its limit
// they have used once they had to wait.
func (p *strictPeer) run(t *testing.T, server *redistest.Server, name string, margin time.Duration, windows int) (refused int, used float64) {
	t.Helper()
	const replicas, each = 8, 3
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range replicas {
		s := &service{answer: func(*http.Request) (int, map[string]string) {
			time.Sleep(time.Duration(rand.IntN(49_000)+1_000) * time.Microsecond) // the way there
			status := p.arrive(time.Now())
			time.Sleep(time.Duration(rand.IntN(49_000)+1_000) * time.Microsecond) // and back
			return status, map[string]string{"Retry-After": "0.000001"}           // which holds nobody
		}}
		store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second))
		transport := newTransport(t, s, store, rateclient.Peer{
			Pattern: "a.test/", Wait: time.Hour,
			Limits: []rateclient.Limit{{Rule: runtime.Rule{Name: name, Window: p.window, Max: int64(p.max), Fail: runtime.FailClosed}, Margin: margin}},
		})
		for range each {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := get(ctx, transport, "http://a.test/"); err != nil && ctx.Err() == nil {
						failed.Add(1)
						return
					}
				}
			})
		}
	}
	time.Sleep(time.Duration(windows) * p.window)
	cancel()
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d callers have failed", n)
	}
	// From the last one that fits the limit at once.
	first, last := p.events[p.max-1], p.events[len(p.events)-1]
	return p.refused, float64(len(p.events)-p.max) / float64(p.max) * float64(p.window) / float64(last.Sub(first))
}

// TestNeverRefused wants replicas together to be never refused by a peer that counts in
// any way, and to use nearly all that it admits. Without a margin they are refused.
func TestNeverRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some windows")
	}
	t.Parallel()
	server := redistest.Start(t)
	window, windows := effort.Choose(5*time.Second, 10*time.Second), effort.Choose(2, 9)
	// A busy machine delays requests for longer at times than it did before, so only a full
	// run, which has it to itself, measures the margin.
	margin := effort.Choose(time.Second, 0)
	for name, admits := range map[string]func(*strictPeer, time.Time) bool{"rolling": rolling, "fixed": fixed, "bucket": bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &strictPeer{max: 100, window: window, admits: admits}
			refused, used := p.run(t, server, name, margin, windows)
			t.Logf("%d of %d requests were refused, %.2f %% of the limit used", refused, len(p.events), used*100)
			if refused > 0 {
				t.Errorf("%d of %d requests were refused", refused, len(p.events))
			}
			if least := effort.Choose(0.6, 0.98); used < least {
				t.Errorf("%.2f %% of the limit was used, want at least %.0f %%", used*100, least*100)
			}
		})
	}
	t.Run("without a margin", func(t *testing.T) {
		t.Parallel()
		p := &strictPeer{max: 100, window: window, admits: rolling}
		refused, _ := p.run(t, server, "control", -1, windows)
		if t.Logf("%d requests were refused", refused); refused == 0 {
			t.Error("no request was refused: the peer is not strict")
		}
	})
	t.Run("each for itself", func(t *testing.T) {
		// As with a token bucket in each replica that has an 8th of the limit: together
		// they send a burst of all of it, and go on at its rate.
		t.Parallel()
		p := &strictPeer{max: 100, window: window, admits: rolling}
		start, sent := time.Now(), 0
		for now := start; now.Before(start.Add(4 * window)); now = now.Add(window / 1000) {
			may := 96 + int(math.Floor(now.Sub(start).Seconds()/window.Seconds()*100))
			for ; sent < may; sent++ {
				p.arrive(now)
			}
		}
		if t.Logf("%d requests were refused", p.refused); p.refused == 0 {
			t.Error("no request was refused: the peer is not strict")
		}
	})
}
