package outages

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestOutageCostsOnce takes Redis away in several ways. That costs a few calls their
// timeout, until the circuit breaker opens. The others do not wait, nor do peeks and
// resets for long, and the store decides again soon after Redis is back.
func TestOutageCostsOnce(t *testing.T) {
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
				outage(t, client, effort.Choose(shortOutage, 3*time.Second), func() { test.stop(server, proxy) }, func() { test.back(server, proxy) })
			})
		}
	}
}

// shortOutage is shorter than a cluster waits until it promotes a replica.
const shortOutage = 700 * time.Millisecond

// outage is TestOutageCostsOnce of any Redis, which is away for so long.
func outage(t *testing.T, client redis.UniversalClient, away time.Duration, stop, back func()) {
	const timeout = 50 * time.Millisecond
	turns := make(chan bool, 100)
	store := runtime.NewRedisStore(client, runtime.WithTimeout(timeout))
	limiter := runtime.New(store, quiet, observing(observe.Observer{Breaker: func(e observe.BreakerEvent) { turns <- e.Open }}))
	limit := (&runtime.Rule{Name: "r", Prefix: "{outage}:", Window: time.Hour, Max: 1_000_000}).Limit(nil)
	decided := func() bool { return taken(t, limiter, limit).Source == rule.SourceStore }
	eventually(t, "the store decides", decided) // a busy machine may need some time to connect
	for len(turns) > 0 {
		<-turns
	}
	stop()
	calls, waited := 0, 0
	begin := time.Now()
	for ; time.Since(begin) < away || len(turns) == 0 && time.Since(begin) < comeback; calls++ {
		if took := elapsed(func() {
			if decided() {
				t.Error("a Redis that is away has decided")
			}
		}); took >= timeout {
			waited++
		}
		time.Sleep(time.Millisecond) // or calls that do not wait keep a processor busy
	}
	// Calls wait until the breaker opens, and then one in every 150 ms. Without it all
	// would; a machine that stalls may hold up a few more.
	if most := 50 + int(time.Since(begin)/(100*time.Millisecond)); waited > most || waited == 0 || calls < 2*waited {
		t.Errorf("%d of %d calls waited, want at most %d and half of them, and some", waited, calls, most)
	}
	if took := elapsed(func() {
		if _, err := limiter.Peek(context.Background(), limit); err == nil {
			t.Error("peek: no error")
		}
		if err := limiter.Reset(context.Background(), limit); err == nil {
			t.Error("reset: no error")
		}
	}); took > 2*timeout+effort.Slack {
		t.Errorf("peek and reset took %v", took)
	}
	back()
	returned := time.Now()
	eventually(t, "the store decides again", decided)
	if took := time.Since(returned); took > 1500*time.Millisecond+effort.Slack {
		t.Errorf("decides again after %v; %v", took, bridge.StoreOf(store).Failures())
	}
	eventually(t, "the breaker closes", func() bool { return len(turns) >= 2 })
	if len(turns) != 2 || !<-turns || <-turns {
		t.Error("the breaker has not opened and closed once")
	}
}

// Callers who give up on a call or a reset, for causes of their own, do not make others
// believe that Redis is gone. They get their context's error, and no policy has a say.
func TestOwnDeadlineIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t), patient), quiet)
	limit := (&runtime.Rule{Name: "r", Prefix: "hurry:", Window: time.Hour, Max: 1000}).Limit(nil)
	for name, do := range map[string]func(context.Context) (runtime.Decision, error){
		"take": func(ctx context.Context) (runtime.Decision, error) { return limiter.Take(ctx, limit) },
		"reset": func(ctx context.Context) (runtime.Decision, error) {
			return runtime.Decision{}, limiter.Reset(ctx, limit)
		},
	} {
		server.Pause()
		for i := range 40 {
			ctx, cancel := context.WithCancel(context.Background())
			want := context.Canceled
			if i%2 == 0 {
				want = context.DeadlineExceeded
				ctx, cancel = context.WithTimeoutCause(ctx, time.Millisecond, errBroken)
			} else {
				time.AfterFunc(time.Millisecond, cancel)
			}
			var d runtime.Decision
			var err error
			if took := elapsed(func() { d, err = do(ctx) }); name == "take" && err != want || !errors.Is(err, want) || d.Allowed || took > effort.Slack {
				t.Errorf("%s: got %+v, %v after %v, want the caller's own %v", name, d, err, took, want)
			}
			cancel()
		}
		server.Resume()
		if d := taken(t, limiter, limit); d.Source != rule.SourceStore {
			t.Errorf("%s: got %+v; want a decision by the store", name, d)
		}
	}
}

// TestResetsDoNotPileUp shows that resets do not wait for a Redis that is not
// there, and leave nothing behind that does. It counts the goroutines of the
// process, so no other test runs beside it.
func TestResetsDoNotPileUp(t *testing.T) {
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(200*time.Millisecond))
	limiter := runtime.New(store, quiet)
	limit := (&runtime.Rule{Name: "r", Prefix: "reset:", Window: time.Hour, Max: 1000}).Limit(nil)
	server.Pause()
	before := goruntime.NumGoroutine()
	concurrently(1000, func(int) {
		if err := limiter.Reset(t.Context(), limit); err == nil {
			t.Error("a stopped Redis has reset a key")
		}
	})
	if more := goruntime.NumGoroutine() - before; more > 500 {
		t.Errorf("1000 resets leave %d goroutines", more)
	}
	broken := bridge.StoreOf(store).Failures()[observe.ClassBreakerOpen]
	concurrently(100, func(int) { _ = limiter.Reset(t.Context(), limit) }) // all but a probe now and then
	if kept := bridge.StoreOf(store).Failures()[observe.ClassBreakerOpen] - broken; kept < 90 {
		t.Errorf("%d of 100 resets were kept from a stopped Redis, want nearly all", kept)
	}
	server.Resume()
}

var errBroken = errors.New("the caller's own")
