package runtime_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
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
	"period":              {runtime.Rule{Algorithm: runtime.FixedWindow, Period: runtime.Day, Max: 1000}, 800, 1},
	"period, reservation": {runtime.Rule{Algorithm: runtime.FixedWindow, Period: runtime.Day, Max: 1000, Reserve: time.Minute}, 800, 1},
}

// Nobody is refused for what this process has given back before, however many call, with one
// trip for a return and the next call.
func TestOwnReturns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cluster := redistest.StartCluster(t)
	stores := map[string]func(t *testing.T) (runtime.Store, *atomic.Int64){
		"memory": func(*testing.T) (runtime.Store, *atomic.Int64) { return runtime.NewMemoryStore(), nil },
		"redis": func(t *testing.T) (runtime.Store, *atomic.Int64) {
			return tripsOf(server.Client(t))
		},
		"cluster": func(t *testing.T) (runtime.Store, *atomic.Int64) {
			return runtime.NewRedisStore(cluster.Client(t), patient), nil
		},
	}
	for where, open := range stores {
		for name, test := range repaid {
			for _, callers := range []int{1, 2, 8, 64} {
				if test.rule.Algorithm == runtime.TokenBucket && callers > 1 {
					continue // what is given back beside others is rounded down to a millionth of a call
				}
				t.Run(fmt.Sprint(where, "/", name, "/", callers), func(t *testing.T) {
					store, trips := open(t)
					limiter := runtime.New(store, quiet, closed)
					rule, ctx := test.rule, t.Context()
					rule.Name, rule.Prefix = "r", t.Name()+":"
					rule.Max *= int64(callers)
					var refused atomic.Int64
					calls := max(10, 200/callers)
					concurrently(callers, func(int) {
						for i := range calls {
							d, err := limiter.Take(ctx, rule.Limit(nil).WithCost(test.cost))
							if err != nil {
								refused.Add(1)
								continue
							}
							if i%20 == 0 {
								time.Sleep(3 * time.Millisecond) // the return goes by itself
							}
							// What an excess leaves is below the max: 200 calls of 1.
							limiter.SettleLater(ctx, d, test.end)
						}
					})
					equal(t, "refused", refused.Load(), 0)
					ok(t, limiter.Close())
					if trips != nil {
						t.Logf("%d trips for %d calls", trips.Load(), calls*callers)
					}
				})
			}
		}
	}
}

func tripsOf(client *redis.Client) (runtime.Store, *atomic.Int64) {
	trips := new(atomic.Int64)
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		if !redistest.Connects(cmds...) {
			trips.Add(1)
		}
		return send()
	}))
	return runtime.NewRedisStore(client, patient), trips
}
