package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestShortScripts gives a store much work at once, in every way in which it comes. All of
// it is done by many scripts: others use Redis in between. How long one takes is measured in
// package script.
func TestShortScripts(t *testing.T) {
	t.Parallel()
	const calls, cost, scripts = 128, 250, 60
	server, cluster := redistest.Start(t), redistest.StartCluster(t)
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
				l.SettleLater(t.Context(), d, limit.WithSettled(2*cost))
			}
			errs := []error{l.Close()}
			peeked, err := l.Peek(t.Context(), settled.Limit(key(fmt.Sprint(calls-1))))
			if used := settled.Max - peeked.Remaining; used != 2*cost {
				errs = append(errs, fmt.Errorf("%d are charged, want %d", used, 2*cost))
			}
			return append(errs, err)
		},
	}
	for name, way := range ways {
		for kind, nodes := range map[string][]*redistest.Server{"one server": {server}, "cluster": cluster.Nodes} {
			t.Run(name+", "+kind, func(t *testing.T) {
				var client redis.UniversalClient = server.Client(t)
				if kind == "cluster" {
					client = cluster.Client(t)
				}
				executed := func() (n int) {
					for _, node := range nodes {
						n += executions(t, node.Client(t))
					}
					return n
				}
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
}
