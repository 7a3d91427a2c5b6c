package runtime_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestBatchWaitsOnce spends the time of one call on a batch for many trips when
// Redis gives no answer.
func TestBatchWaitsOnce(t *testing.T) {
	t.Parallel()
	const calls = 1000
	rule := &runtime.Rule{Name: "batch", Prefix: "batch:", Window: time.Hour, Max: 1}
	server := redistest.Start(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = cluster.Close() })
	server.Pause()
	t.Cleanup(server.Resume)
	for name, client := range map[string]redis.UniversalClient{"one server": server.Client(t), "slots": cluster} {
		store := runtime.NewRedisStore(client, runtime.WithTimeout(100*time.Millisecond))
		limiter := runtime.New(store, quiet, closed)
		var limits []runtime.Limit
		for i := range int64(calls) {
			limits = append(limits, rule.Limit(runtime.NewKey().AddInt(i)))
		}
		for i, o := range limiter.TakeEach(context.Background(), limits...) {
			if !errors.Is(o.Err, runtime.ErrUnavailable) {
				t.Fatalf("%s: call %d: got %+v", name, i, o)
			}
		}
		if diff := cmp.Diff(map[runtime.ErrorClass]int64{runtime.ClassTimeout: calls}, store.Failures()); diff != "" {
			t.Errorf("%s: why calls were not decided (-want +got):\n%s", name, diff)
		}
	}
}

// TestBatchOfOneWhoLeft sends no more of a batch when its caller has gone.
func TestBatchOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: redistest.Start(t).Addr}))
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	var count commands
	client.AddHook(&count)
	client.AddHook(&leaver{cancel})
	limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
	rule := &runtime.Rule{Name: "batch", Prefix: "batch:", Window: time.Hour, Max: 2000}
	limiter.TakeEach(ctx, slices.Repeat([]runtime.Limit{rule.Limit(nil)}, 1000)...)
	sent := slices.DeleteFunc(count.sent(), func(name string) bool { return name != "evalsha" })
	if len(sent) > 1 {
		t.Errorf("%d scripts were sent", len(sent))
	}
}

// A leaver is a hook that ends a context when a script has been sent.
type leaver struct{ leave context.CancelFunc }

func (leaver) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l leaver) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			defer l.leave()
		}
		return next(ctx, cmd)
	}
}
func (leaver) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
