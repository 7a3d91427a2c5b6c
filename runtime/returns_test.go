package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A repaid call is one whose charge has come back when the next one begins, if not all of it.
var repaid = map[string]struct {
	rule runtime.Rule
	cost int64
	end  int64 // what the call turns out to cost
}{
	"permit":              {runtime.Rule{Algorithm: runtime.Concurrency, Window: time.Minute, Max: 1}, 1, 0},
	"log":                 {runtime.Rule{Window: time.Hour, Max: 1}, 1, 0},
	"packed log":          {runtime.Rule{Window: time.Hour, Max: 1, Storage: runtime.StoragePacked}, 1, 0},
	"counter":             {runtime.Rule{Algorithm: runtime.SlidingCounter, Window: time.Hour, Max: 1}, 1, 0},
	"fixed window":        {runtime.Rule{Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 1}, 1, 0},
	"bucket":              {runtime.Rule{Algorithm: runtime.TokenBucket, Window: time.Second, Max: 1}, 1, 0},
	"block":               {runtime.Rule{Window: time.Hour, Max: 1, Block: time.Hour}, 1, 0},
	"excess":              {runtime.Rule{Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 1000}, 800, 1},
	"reservation":         {runtime.Rule{Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 1000, Reserve: time.Minute}, 800, 1},
	"period":              {runtime.Rule{Algorithm: runtime.FixedWindow, Period: rule.Day, Max: 1000}, 800, 1},
	"period, reservation": {runtime.Rule{Algorithm: runtime.FixedWindow, Period: rule.Day, Max: 1000, Reserve: time.Minute}, 800, 1},
}

// testOwnReturnsForgotten has servers forget their scripts between each return and the next call,
// and another process tell them those that take, but not those that settle.
func testOwnReturnsForgotten(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	for name, test := range repaid {
		t.Run(name, func(t *testing.T) {
			rule := test.rule
			rule.Name, rule.Prefix = "r", "{x}"+t.Name()+":" // all on one node
			own := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed)
			other := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, runtime.WithNamespace("other"))
			refused := 0
			for i := range effort.Choose(30, 66) { // of 3 calls: what an excess leaves is below the max until 200 calls of 1
				onEach(t, client, func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() })
				_, err := other.Take(t.Context(), rule.Limit(key(fmt.Sprint(i))).WithCost(test.cost))
				ok(t, err)
				for range 3 {
					d, err := own.Take(t.Context(), rule.Limit(key("own")).WithCost(test.cost))
					if err != nil {
						refused++
						continue
					}
					own.SettleLater(t.Context(), d, test.end)
				}
			}
			equal(t, "refused", refused, 0)
			ok(t, errors.Join(own.Close(), other.Close()))
		})
	}
}

// A permit whose return a renewal has overtaken is returned again before Close returns nil,
// however often the store fails meanwhile; if it fails for two seconds Close says so.
func TestCloseReturnsPermits(t *testing.T) {
	t.Parallel()
	for _, failures := range []int64{0, 1, 5, 1 << 40} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			limit, gate := permitRule(100).Limit(nil), make(chan struct{})
			store.renew = func(ctx context.Context, calls []terms.Call) error {
				<-gate // and is executed after the returns
				return store.engine.Renew(ctx, calls)
			}
			failing := failures
			var held []runtime.Decision
			for range 100 {
				held = append(held, taken(t, limiter, limit))
			}
			time.Sleep(15 * time.Second) // a renewal is under way
			for _, d := range held {
				limiter.SettleLater(t.Context(), d)
			}
			synctest.Wait()
			store.settle = func(ctx context.Context, charges []terms.Charge) error {
				if failing--; failing >= 0 {
					return errBroken
				}
				return store.engine.Settle(ctx, charges)
			}
			go close(gate)
			err := limiter.Close()
			if lost := failures > 1000; lost != (err != nil) {
				t.Errorf("after %d failures: %v", failures, err)
			} else if !lost {
				wantLeft(t, runtime.New(store, quiet), limit, 100)
			}
			failing = 0
			ok(t, limiter.Close())
			wantLeft(t, runtime.New(store, quiet), limit, 100)
		})
	}
}
