package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestOutageCostsOnce shows that a Redis that does not answer costs a few calls
// their timeout, that the others do not wait for it, and that limits are back
// soon after Redis is.
func TestOutageCostsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outage(t, server.Client(t), server.Pause, server.Resume)
}

// outage is the same of any Redis.
func outage(t *testing.T, client redis.UniversalClient, stop, resume func()) {
	ctx := context.Background()
	const timeout = 50 * time.Millisecond
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(timeout)), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "{outage}:", Window: time.Hour, Max: 1_000_000}
	take := func() (runtime.Decision, time.Duration) {
		t.Helper()
		start := time.Now()
		d, err := limiter.Take(ctx, rule.Limit(nil))
		if err != nil {
			t.Fatalf("a call did not get through: %v", err)
		}
		return d, time.Since(start)
	}
	for tries := 0; ; tries++ { // a busy machine may need some to connect
		if d, _ := take(); d.Source == runtime.SourceStore {
			break
		} else if tries == 1000 {
			t.Fatalf("decided by %v, want the store", d.Source)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	const calls = 2000
	waited := 0
	start := time.Now()
	for range calls {
		d, took := take()
		if d.Source == runtime.SourceStore {
			t.Fatal("a stopped Redis decided")
		}
		if took >= timeout {
			waited++
		}
	}
	// Calls wait until the breaker opens, and then one in every 150 ms. Without
	// it all 2000 would; a machine that stalls may hold up a few more.
	if most := 50 + int(time.Since(start)/(100*time.Millisecond)); waited > most {
		t.Errorf("%d of %d calls waited, want at most %d", waited, calls, most)
	}
	if waited == 0 {
		t.Error("no call waited: is Redis really stopped?")
	}
	resume()
	for start := time.Now(); ; {
		if d, _ := take(); d.Source == runtime.SourceStore {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatal("the store does not decide although Redis is back")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOwnDeadlineIsNoOutage shows that callers in a hurry do not make others
// believe that Redis is gone.
func TestOwnDeadlineIsNoOutage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t), patient), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "hurry:", Window: time.Hour, Max: 1000}
	server.Pause()
	for range 20 {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		if _, err := limiter.Take(short, rule.Limit(nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's own %v", err, context.DeadlineExceeded)
		}
		cancel()
	}
	server.Resume()
	if d, err := limiter.Take(ctx, rule.Limit(nil)); err != nil || d.Source != runtime.SourceStore {
		t.Errorf("got %+v, %v; want a decision by the store", d, err)
	}
}

// TestResetIsNoOutage shows the same of resets, whose callers have causes of
// their own to give up.
func TestResetIsNoOutage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t), patient), quiet)
	limit := (&runtime.Rule{Name: "r", Prefix: "reset:", Window: time.Hour, Max: 1000}).Limit(nil)
	server.Pause()
	for range 20 {
		short, cancel := context.WithTimeoutCause(ctx, time.Millisecond, errBroken)
		if err := limiter.Reset(short, limit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's own %v", err, context.DeadlineExceeded)
		}
		cancel()
	}
	server.Resume()
	if d, err := limiter.Take(ctx, limit); err != nil || d.Source != runtime.SourceStore {
		t.Errorf("got %+v, %v; want a decision by the store", d, err)
	}
}

// TestResetsDoNotPileUp shows that resets do not wait for a Redis that is not
// there, and leave nothing behind that does. It counts the goroutines of the
// process, so no other test runs beside it.
func TestResetsDoNotPileUp(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(200*time.Millisecond))
	limiter := runtime.New(store, quiet)
	limit := (&runtime.Rule{Name: "r", Prefix: "reset:", Window: time.Hour, Max: 1000}).Limit(nil)
	server.Pause()
	before := goruntime.NumGoroutine()
	var wait sync.WaitGroup
	for range 1000 {
		wait.Go(func() {
			if err := limiter.Reset(ctx, limit); err == nil {
				t.Error("a stopped Redis has reset a key")
			}
		})
	}
	wait.Wait()
	if more := goruntime.NumGoroutine() - before; more > 500 {
		t.Errorf("1000 resets leave %d goroutines", more)
	}
	broken := store.Failures()[runtime.ClassBreakerOpen]
	for range 100 { // all but a probe now and then
		wait.Go(func() { _ = limiter.Reset(ctx, limit) })
	}
	wait.Wait()
	if kept := store.Failures()[runtime.ClassBreakerOpen] - broken; kept < 90 {
		t.Errorf("%d of 100 resets were kept from a stopped Redis, want nearly all", kept)
	}
	server.Resume()
}
