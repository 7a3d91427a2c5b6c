package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// warmRules are a rule of every algorithm, with a block and without.
func warmRules() (rules []*runtime.Rule) {
	for _, block := range []time.Duration{0, time.Minute} {
		for i, r := range []runtime.Rule{
			{}, {Storage: runtime.StoragePacked}, {Algorithm: runtime.SlidingCounter}, {Algorithm: runtime.FixedWindow},
			{Algorithm: runtime.TokenBucket}, {Algorithm: runtime.LeakyBucket}, {Algorithm: runtime.Concurrency},
		} {
			if r.Algorithm == runtime.Concurrency && block > 0 {
				continue
			}
			r.Name, r.Window, r.Max, r.Block = fmt.Sprintf("warm%d%v", i, block), time.Hour, 100, block
			r.Prefix = r.Name + ":"
			rules = append(rules, &r)
		}
	}
	return rules
}

// TestWarm wants a limiter that was warmed to need no script's text afterwards, whatever
// its rules are and whether calls come alone or together, on every server.
func TestWarm(t *testing.T) {
	cluster := redistest.StartCluster(t)
	cluster.WaitReady()
	for name, client := range map[string]redis.UniversalClient{
		"server": redistest.Start(t).Client(t), "cluster": cluster.Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
			defer limiter.Close()
			rules := warmRules()
			for _, warmed := range []bool{true, false} {
				var texts atomic.Int64
				onEach(t, client, func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() })
				onEach(t, client, func(ctx context.Context, node *redis.Client) error { return node.ConfigResetStat(ctx).Err() })
				if limiter.Register(rules...); warmed {
					if err := limiter.Warm(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, r := range rules {
					for key := range 40 {
						limit := r.Limit(runtime.NewKey().AddString(fmt.Sprint(key)))
						decision, err := limiter.Take(t.Context(), limit)
						if err != nil {
							t.Fatal(r.Name, err)
						}
						if err := limiter.Refund(t.Context(), decision, limit); err != nil {
							t.Fatal(r.Name, err)
						}
					}
				}
				onEach(t, client, func(ctx context.Context, node *redis.Client) error {
					info, err := node.Info(ctx, "commandstats").Result()
					texts.Add(int64(strings.Count(info, "cmdstat_eval:")))
					return err
				})
				if (texts.Load() == 0) != warmed {
					t.Errorf("warmed %v: %d servers were sent the text of a script", warmed, texts.Load())
				}
			}
		})
	}
}

// onEach has every server do something.
func onEach(t *testing.T, client redis.UniversalClient, f func(context.Context, *redis.Client) error) {
	t.Helper()
	var err error
	switch c := client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(t.Context(), f)
	case *redis.Client:
		err = f(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWarmNothing wants limiters without servers to have nothing to do, and one whose
// server is gone to say so, and to say no address.
func TestWarmNothing(t *testing.T) {
	for _, limiter := range []*runtime.Limiter{inMemory(), runtime.New(nil)} {
		limiter.Register(warmRules()...)
		if err := limiter.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	}
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}))
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client), quiet)
	if err := limiter.Warm(t.Context()); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("without a server: %v", err)
	}
}
