package rateclient_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// run has 8 replicas with Redis clients of their own send as fast as they may, for some
// windows, and returns how many requests the peer has refused, and which share of its limit
// they have used.
func run(t *testing.T, p *strictpeer.Peer, server *redistest.Server, name string, margin time.Duration, windows int) (refused int, used float64) {
	t.Helper()
	const replicas, each = 8, 3
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range replicas {
		s := &service{answer: func(*http.Request) (int, map[string]string) {
			time.Sleep(time.Duration(rand.IntN(49_000)+1_000) * time.Microsecond) // the way there
			status := 429
			if _, ok := p.Arrive(); ok {
				status = 200
			}
			time.Sleep(time.Duration(rand.IntN(49_000)+1_000) * time.Microsecond) // and back
			return status, map[string]string{"Retry-After": "0.000001"}           // which holds nobody
		}}
		store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second))
		transport := newTransport(t, s, store, rateclient.Peer{
			Pattern: "a.test/", Wait: time.Hour,
			Limits: []rateclient.PeerLimit{{Rule: runtime.Rule{Name: name, Window: p.Window, Max: int64(p.Max), Fail: runtime.FailClosed}, Margin: margin}},
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
	time.Sleep(time.Duration(windows) * p.Window)
	end := time.Now()
	cancel()
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d callers have failed", n)
	}
	_, refused = p.Seen()
	return refused, p.Used(end)
}

// TestNeverRefused wants replicas together to be never refused by a peer that counts in
// any way, and to use nearly all that it admits. Without a margin they are refused. It waits
// for windows to pass, in a full run only; with -short for fewer.
func TestNeverRefused(t *testing.T) {
	t.Parallel()
	if !effort.Full() {
		t.Skip("waits for windows to pass: in a full run only")
	}
	server := redistest.Start(t)
	window, windows, margin, least := 10*time.Second, 9, time.Duration(0), 0.98
	if testing.Short() {
		// A busy machine delays requests for longer at times than it did before, so only a
		// run that has it to itself measures the margin.
		window, windows, margin, least = 5*time.Second, 2, time.Second, 0.6
	}
	for name, admits := range map[string]strictpeer.Count{"rolling": strictpeer.Rolling, "fixed": strictpeer.Fixed, "bucket": strictpeer.Bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &strictpeer.Peer{Max: 100, Window: window, Admits: admits}
			refused, used := run(t, p, server, name, margin, windows)
			t.Logf("%d requests were refused, %.2f %% of the limit used", refused, used*100)
			if refused > 0 {
				t.Errorf("%d requests were refused", refused)
			}
			if used < least {
				t.Errorf("%.2f %% of the limit was used, want at least %.0f %%", used*100, least*100)
			}
		})
	}
	t.Run("without a margin", func(t *testing.T) {
		t.Parallel()
		p := &strictpeer.Peer{Max: 100, Window: window, Admits: strictpeer.Rolling}
		for range 3 { // a busy machine may be too slow to send requests close together
			refused, _ := run(t, p, server, "control", -1, windows)
			t.Logf("%d requests were refused", refused)
			if refused > 0 {
				return
			}
		}
		t.Error("no request was refused: the peer is not strict")
	})
}
