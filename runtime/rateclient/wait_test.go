package rateclient_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestWaitIsOneDecision wants a request that waits for its turn to be one decision, however often it
// asks, with the time that it has waited, and nobody to be told of a refusal who is none.
func TestWaitIsOneDecision(t *testing.T) {
	for name, c := range map[string]struct {
		rule    runtime.Rule
		wait    time.Duration
		answer  func(r *http.Request) (int, map[string]string)
		refused int // of 30
		noWaits bool
	}{
		"a window":  {rule: runtime.Rule{Max: 3}, wait: time.Hour},
		"a bucket":  {rule: runtime.Rule{Max: 3, Algorithm: runtime.TokenBucket}, wait: time.Hour},
		"a counter": {rule: runtime.Rule{Max: 3, Algorithm: runtime.SlidingCounter}, wait: time.Hour},
		"too late":  {rule: runtime.Rule{Max: 3, Algorithm: runtime.FixedWindow}, wait: 2500 * time.Millisecond, refused: 21},
		"no wait":   {rule: runtime.Rule{Max: 3}, refused: 27, noWaits: true},
		"the peer holds": {rule: runtime.Rule{Max: 3}, wait: time.Hour, answer: func() func(*http.Request) (int, map[string]string) {
			var refused atomic.Bool
			return func(*http.Request) (int, map[string]string) {
				if refused.Swap(true) {
					return 200, nil
				}
				return 429, map[string]string{"Retry-After": "30"}
			}
		}()},
		"no more left": {rule: runtime.Rule{Max: 100}, wait: time.Hour, answer: func(*http.Request) (int, map[string]string) {
			return 200, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "5"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				decided, verdicts, waits := map[string]int{}, map[observe.Verdict]int{}, 0
				var inLine, asked, told time.Duration
				var lines strings.Builder
				s := &service{answer: c.answer}
				limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))), runtime.WithObserver(&observe.Observer{
					Decision: func(_ context.Context, ev observe.DecisionEvent) {
						mu.Lock()
						defer mu.Unlock()
						decided[ev.Rule]++
						if ev.Rule == "peer" {
							verdicts[ev.Verdict]++
						}
					},
					KeyRefused: func(context.Context, observe.KeyRefusedEvent) { mu.Lock(); defer mu.Unlock(); decided["key refused"]++ },
					Wait: func(_ context.Context, ev observe.WaitEvent) {
						mu.Lock()
						defer mu.Unlock()
						if !ev.Waiting {
							waits, inLine = waits+1, inLine+ev.Waited
						}
					},
					Call: func(_ context.Context, ev observe.CallEvent) { mu.Lock(); defer mu.Unlock(); asked += ev.Waited },
				}))
				defer limiter.Close()
				c.rule.Name, c.rule.Window = "peer", time.Second
				transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Wait: c.wait, Limits: []rateclient.PeerLimit{{Rule: c.rule, Margin: -1}}}},
					rateclient.WithNext(s), rateclient.WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for range 30 {
					wg.Go(func() {
						began := time.Now()
						_, err := get(t.Context(), transport, "http://a.test/")
						mu.Lock()
						defer mu.Unlock()
						told += time.Since(began)
						if err != nil && !errors.Is(err, runtime.ErrLimited) {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				wg.Wait()
				if n := 30 - c.refused; s.seen() != n || verdicts[observe.VerdictAdmitted] != n || verdicts[observe.VerdictRefused] != c.refused || decided["peer"] != 30 || decided["key refused"] != c.refused {
					t.Errorf("%d were sent, with decisions %v and verdicts %v", s.seen(), decided, verdicts)
				}
				if logged := strings.Contains(lines.String(), "over its rate limit"); logged != (c.refused > 0) {
					t.Errorf("%d were refused, and the log says:\n%s", c.refused, lines.String())
				}
				if waits > 0 == c.noWaits || inLine != told || asked != told {
					t.Errorf("%d waited %v by their events and %v by their decisions, and have %v", waits, inLine, asked, told)
				}
			})
		})
	}
}
