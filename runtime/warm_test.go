package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
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
			rules = append(rules, &r)
		}
	}
	return rules
}

// testWarm wants a limiter that was warmed to need no script's text afterwards, whatever
// its rules are and whether calls come alone or together.
func testWarm(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, runtime.WithoutReports()) // which are sent as a text
	defer limiter.Close()
	rules := warmRules()
	for _, warmed := range []bool{true, false} {
		onEach(t, client, func(ctx context.Context, node *redis.Client) error {
			return errors.Join(node.ScriptFlush(ctx).Err(), node.ConfigResetStat(ctx).Err())
		})
		limiter.Register(rules...)
		if warmed {
			ok(t, limiter.Warm(t.Context()))
		}
		for _, r := range rules {
			for i := range effort.Choose(12, 40) {
				refunded(t, limiter, taken(t, limiter, r.Limit(key(fmt.Sprint(i)))))
			}
		}
		var texts atomic.Int64
		onEach(t, client, func(ctx context.Context, node *redis.Client) error {
			info, err := node.Info(ctx, "commandstats").Result()
			texts.Add(int64(strings.Count(info, "cmdstat_eval:")))
			return err
		})
		if (texts.Load() == 0) != warmed {
			t.Errorf("warmed %v: %d servers were sent the text of a script", warmed, texts.Load())
		}
	}
}

// onEach has every server do something.
func onEach(t *testing.T, client redis.UniversalClient, f func(context.Context, *redis.Client) error) {
	t.Helper()
	if cluster, is := client.(*redis.ClusterClient); is {
		ok(t, cluster.ForEachMaster(t.Context(), f))
	} else {
		ok(t, f(t.Context(), client.(*redis.Client)))
	}
}

// TestWarmNothing wants limiters without servers to have nothing to do, and one whose
// server is gone to say so, and to say no address.
func TestWarmNothing(t *testing.T) {
	memory, none := inMemory(), runtime.New(nil, quiet)
	for _, limiter := range []*runtime.Limiter{memory, none} {
		limiter.Register(warmRules()...)
	}
	ok(t, memory.Warm(t.Context()))
	var found *runtime.FindingsError
	if err := none.Warm(t.Context()); !errors.As(err, &found) || len(found.Findings) != 1 || found.Findings[0].Code != "no_store" {
		t.Errorf("without a store: %v", err)
	}
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}))
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client), quiet)
	if err := limiter.Warm(t.Context()); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("without a server: %v", err)
	}
}

// testShortScripts gives a store much work at once, in every way in which it comes. All of
// it is done by many scripts: others use Redis in between. How long one takes is measured in
// package script.
func testShortScripts(t *testing.T, client redis.UniversalClient, nodes []*redistest.Server) {
	const calls, cost, scripts = 128, 250, 60
	settled := &runtime.Rule{Name: "settled", Prefix: "{x}settled:", Window: time.Hour, Max: 100_000}
	inFlight := &runtime.Rule{Name: "permits", Prefix: "{x}permits:", Window: time.Hour, Max: 100_000, Algorithm: runtime.Concurrency}
	limits := func(prefix string) (all []runtime.Limit) {
		rule := &runtime.Rule{Name: "each", Prefix: prefix, Window: time.Hour, Max: 100_000}
		for i := range calls {
			all = append(all, rule.Limit(key(fmt.Sprint(i))).WithCost(cost))
		}
		return all
	}
	each := func(t *testing.T, limiter *runtime.Limiter, limits []runtime.Limit) {
		for _, o := range limiter.TakeEach(t.Context(), limits...) {
			ok(t, o.Err)
		}
	}
	ways := map[string]func(*testing.T, *runtime.Limiter, *runtime.RedisStore){
		"take each, in one slot":   func(t *testing.T, l *runtime.Limiter, _ *runtime.RedisStore) { each(t, l, limits("{x}each:")) },
		"take each, in many slots": func(t *testing.T, l *runtime.Limiter, _ *runtime.RedisStore) { each(t, l, limits("each:")) },
		"renew": func(t *testing.T, _ *runtime.Limiter, s *runtime.RedisStore) {
			var held []rawstore.Call
			for i := range calls {
				held = append(held, single(inFlight, fmt.Sprint(inFlight.Prefix, i), cost)...)
			}
			must(t, s, take, held)
			must(t, s, renew, held)
			for i := range held {
				if held[i].Charges[0].At == 0 {
					t.Fatal("a permit was not renewed")
				}
			}
		},
		"settle later": func(t *testing.T, l *runtime.Limiter, s *runtime.RedisStore) {
			limit := func(i int) runtime.Limit { return settled.Limit(key(fmt.Sprint(i))) }
			for i := range calls {
				l.SettleLater(t.Context(), taken(t, l, limit(i).WithCost(cost)), 2*cost)
			}
			ok(t, l.Close())
			wantLeft(t, l, limit(calls-1), settled.Max-2*cost)
		},
	}
	executed := func() (n int) {
		for _, node := range nodes {
			n += executions(t, node.Client(t))
		}
		return n
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			before := executed()
			store := runtime.NewRedisStore(client, patient, atOnce)
			way(t, runtime.New(store, quiet, closed), store)
			between(t, "scripts", executed()-before, scripts, 100*scripts)
		})
	}
}
