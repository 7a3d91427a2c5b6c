package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
			r.Prefix = r.Name + ":"
			rules = append(rules, &r)
		}
	}
	return rules
}

// TestOnServer has on a server by itself what TestSharedCluster has on a cluster.
func TestOnServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	t.Run("warm", func(t *testing.T) { testWarm(t, server.Client(t)) })
	t.Run("short scripts", func(t *testing.T) { testShortScripts(t, server.Client(t), []*redistest.Server{server}) })
}

// testWarm wants a limiter that was warmed to need no script's text afterwards, whatever
// its rules are and whether calls come alone or together.
func testWarm(t *testing.T, client redis.UniversalClient) {
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
	defer limiter.Close()
	rules := warmRules()
	for _, warmed := range []bool{true, false} {
		var texts atomic.Int64
		onEach(t, client, func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() })
		onEach(t, client, func(ctx context.Context, node *redis.Client) error { return node.ConfigResetStat(ctx).Err() })
		if limiter.Register(rules...); warmed {
			ok(t, limiter.Warm(t.Context()))
		}
		for _, r := range rules {
			for key := range 40 {
				refunded(t, limiter, taken(t, limiter, r.Limit(runtime.NewKey().AddString(fmt.Sprint(key)))))
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
		ok(t, limiter.Warm(t.Context()))
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
	each := func(limiter *runtime.Limiter, limits []runtime.Limit) (errs []error) {
		for _, o := range limiter.TakeEach(t.Context(), limits...) {
			errs = append(errs, o.Err)
		}
		return errs
	}
	ways := map[string]func(*runtime.Limiter, *runtime.RedisStore) []error{
		"take each, in one slot": func(l *runtime.Limiter, _ *runtime.RedisStore) []error { return each(l, limits("{x}each:")) },
		"take each, in many slots": func(l *runtime.Limiter, _ *runtime.RedisStore) []error {
			return each(l, limits("each:"))
		},
		"renew": func(_ *runtime.Limiter, s *runtime.RedisStore) []error {
			var held []rawstore.Call
			for i := range calls {
				held = append(held, rawstore.Call{Charges: []rawstore.Charge{{
					Rule: inFlight, Key: fmt.Append(nil, inFlight.Prefix, i), Max: inFlight.Max, Cost: cost,
				}}})
			}
			errs := []error{rawstore.On(s).Take(t.Context(), held), rawstore.On(s).Renew(t.Context(), held)}
			for i := range held {
				if errs = append(errs, held[i].Err); held[i].Charges[0].At == 0 {
					errs = append(errs, errors.New("a permit was not renewed"))
				}
			}
			return errs
		},
		"settle later": func(l *runtime.Limiter, s *runtime.RedisStore) []error {
			for i := range calls {
				limit := settled.Limit(key(fmt.Sprint(i))).WithCost(cost)
				d, err := l.Take(t.Context(), limit)
				if err != nil {
					return []error{err}
				}
				l.SettleLater(t.Context(), d, 2*cost)
			}
			errs := []error{l.Close()}
			peeked, err := l.Peek(t.Context(), settled.Limit(key(fmt.Sprint(calls-1))))
			if used := settled.Max - peeked.Remaining; used != 2*cost {
				errs = append(errs, fmt.Errorf("%d are charged, want %d", used, 2*cost))
			}
			return append(errs, err)
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
			limiter := runtime.New(store, quiet, closed)
			errs := slices.DeleteFunc(way(limiter, store), func(err error) bool { return err == nil })
			if len(errs) > 0 {
				t.Errorf("%d errors, the first: %v", len(errs), errs[0])
			}
			if n := executed() - before; n < scripts {
				t.Errorf("%d scripts, want at least %d", n, scripts)
			}
		})
	}
}
