package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A panicker is a hook that panics while it is armed.
type panicker struct{ armed atomic.Bool }

func (*panicker) DialHook(next redis.DialHook) redis.DialHook { return next }
func (p *panicker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.armed.Load() {
			panic("in a hook")
		}
		return next(ctx, cmd)
	}
}
func (*panicker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestPanickingHook has a hook of the client panic, for callers that travel
// alone and for such that share trips. The policy decides their calls, and all
// is well when the hook is.
func TestPanickingHook(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	for name, tuned := range map[string]bool{"alone": true, "shared": false} {
		options := &redis.Options{Addr: server.Addr}
		if tuned {
			runtime.TuneRedis(options)
		}
		client := redis.NewClient(options)
		t.Cleanup(func() { _ = client.Close() })
		var hook panicker
		client.AddHook(&hook)
		var told atomic.Int64
		observer := &runtime.Observer{Panic: func(ev runtime.PanicEvent) {
			if ev.In == "redis client" {
				told.Add(1)
			}
		}}
		limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, runtime.WithObserver(observer))
		rule := &runtime.Rule{Name: name, Prefix: name + ":", Window: time.Hour, Max: 1000}
		taken(t, limiter, rule.Limit(nil))
		hook.armed.Store(true)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 50 { // more than trips may be stuck
					if _, err := limiter.Take(ctx, rule.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
						t.Errorf("%s: got %v", name, err)
					}
				}
			})
		}
		wait.Wait()
		if err := limiter.Reset(ctx, rule.Limit(key("k"))); err == nil {
			t.Errorf("%s: a reset without an answer succeeded", name)
		}
		if told.Load() == 0 {
			t.Errorf("%s: the observer was not told of a panic", name)
		}
		hook.armed.Store(false)
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, err := limiter.Take(ctx, rule.Limit(nil)); err == nil {
				break
			} else if time.Now().After(until) {
				t.Fatalf("%s: got %v, long after all was well", name, err)
			}
		}
	}
}
