package runtime_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestLimitsAreBack takes Redis away for long enough that the breaker opens, and
// wants the store to decide again soon after it is back.
func TestLimitsAreBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		stop, back func(*redistest.Server, *faultproxy.Proxy)
	}{
		{"frozen", func(s *redistest.Server, _ *faultproxy.Proxy) { s.Pause() }, func(s *redistest.Server, _ *faultproxy.Proxy) { s.Resume() }},
		{"killed", func(s *redistest.Server, _ *faultproxy.Proxy) { s.Kill() }, func(s *redistest.Server, _ *faultproxy.Proxy) { s.Restart() }},
		{"silent", func(_ *redistest.Server, p *faultproxy.Proxy) { p.DropReplies() }, func(_ *redistest.Server, p *faultproxy.Proxy) { p.Pass() }},
	} {
		for name, tuned := range map[string]bool{"default options": false, "tuned": true} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				proxy := faultproxy.Start(t, server.Addr)
				client := server.Client(t, func(o *redis.Options) {
					o.Addr = proxy.Addr
					if tuned {
						runtime.TuneRedis(o)
					}
				})
				turns := make(chan bool, 100)
				store := runtime.NewRedisStore(client)
				limiter := runtime.New(store, quiet, observing(runtime.Observer{
					Breaker: func(e runtime.BreakerEvent) { turns <- e.Open },
				}))
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1_000_000}
				take := func() runtime.Source {
					t.Helper()
					d := taken(t, limiter, rule.Limit(nil))
					return d.Source
				}
				for take() != runtime.SourceStore {
				}
				for len(turns) > 0 { // a busy machine was slow to connect
					<-turns
				}
				test.stop(server, proxy)
				away := effort.Choose(700*time.Millisecond, 3*time.Second)
				for start := time.Now(); time.Since(start) < away || len(turns) == 0 && time.Since(start) < comeback; time.Sleep(time.Millisecond) {
					if take() == runtime.SourceStore {
						t.Fatal("a Redis that is away has decided")
					}
				}
				test.back(server, proxy)
				back := time.Now()
				for take() != runtime.SourceStore && time.Since(back) < 20*time.Second {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(back)
				t.Logf("decides again after %v; %v", took, store.Failures())
				if took > 1500*time.Millisecond+slack {
					t.Errorf("decides again after %v", took)
				}
				eventually(t, "the circuit breaker closes", func() bool { return len(turns) >= 2 })
				if len(turns) != 2 || !<-turns || <-turns {
					t.Error("the breaker has not opened and closed once")
				}
			})
		}
	}
}
