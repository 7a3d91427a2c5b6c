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
	"github.com/rategen/rategen/internal/testkit/limittest"
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
	kept := func() int { return int(bridge.StoreOf(store).Failures()[observe.ClassBreakerOpen]) }
	// calls makes calls, and returns how many of them asked Redis, and in what time.
	calls := func(on func(since time.Duration) bool, decides func()) (asked int, lasted time.Duration) {
		begin, before := time.Now(), kept()
		for on(time.Since(begin)) {
			if decided() {
				decides()
			}
			asked++
			time.Sleep(time.Millisecond) // or calls that do not wait keep a processor busy
		}
		return asked - (kept() - before), time.Since(begin)
	}
	wrong := func() { t.Error("a Redis that is away has decided") }
	stop()
	asked, _ := calls(func(since time.Duration) bool { return len(turns) == 0 && since < comeback }, wrong)
	if asked == 0 || asked > 50 || len(turns) == 0 {
		t.Errorf("%d calls wait until the breaker opens, want 1 to 50", asked)
	}
	// Then one waits in every 150 ms.
	if asked, lasted := calls(func(since time.Duration) bool { return since < away }, wrong); asked > 2+int(lasted/(100*time.Millisecond)) {
		t.Errorf("%d calls wait in %v while the breaker is open", asked, lasted)
	}
	if len(turns) != 1 || !<-turns {
		t.Error("the breaker has not opened once")
	}
	took := comeback
	for range 3 { // a machine that stalls adds to some
		took = min(took, elapsed(func() {
			if _, err := limiter.Peek(context.Background(), limit); err == nil {
				t.Error("peek: no error")
			}
			if err := limiter.Reset(context.Background(), limit); err == nil {
				t.Error("reset: no error")
			}
		}))
	}
	if took > 2*timeout+effort.Slack {
		t.Errorf("peek and reset took %v", took)
	}
	back()
	again := false
	asked, took = calls(func(since time.Duration) bool { return !again && since < 2*time.Minute }, func() { again = true })
	// Where a machine gives no answer in 50 ms for so long, it is asked all the time.
	if !again || took > soonAgain && asked < int(took/(3*time.Second)) {
		t.Errorf("decides again: %v, after %v in which %d calls have asked; %v", again, took, asked, bridge.StoreOf(store).Failures())
	}
	open := true // and on a busy machine once more
	eventually(t, "the breaker closes", func() bool {
		for len(turns) > 0 {
			open = <-turns
		}
		return !open
	})
}

// soonAgain is in what time a store decides again whose Redis is back. Package redis holds it to
// 150 ms in a bubble; here a machine may stand still.
const soonAgain = 10 * time.Second

// Callers who give up on a call or a reset, for causes of their own, do not make others
// believe that Redis is gone. They get their context's error, and no policy has a say.
func TestOwnDeadlineIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t, limittest.Unhurried), patient), quiet)
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
			if took := elapsed(func() { d, err = do(ctx) }); name == "take" && err != want || !errors.Is(err, want) || d.Allowed || took > 15*time.Second { // the store waits for 20
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
	took := elapsed(func() {
		concurrently(100, func(int) { _ = limiter.Reset(t.Context(), limit) }) // all but a probe now and then
	})
	if kept := bridge.StoreOf(store).Failures()[observe.ClassBreakerOpen] - broken; kept < 90-int64(took/(100*time.Millisecond)) {
		t.Errorf("%d of 100 resets were kept from a stopped Redis, want nearly all", kept)
	}
	server.Resume()
}

var errBroken = errors.New("the caller's own")
