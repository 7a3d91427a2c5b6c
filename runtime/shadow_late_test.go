package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// testShadowLate has the node of a shadow limit answer late, and wants each call that the enforced
// limit of another node admits to be counted, or to be reported as one that the shadow limit has
// not decided; and the others to be neither.
func testShadowLate(t *testing.T, cluster *redistest.Cluster) {
	const admits = 20
	owner, client := cluster.Owners(), cluster.Client(t)
	node := owner(0)
	var late atomic.Int64 // by how much its answers come
	client.OnNewNode(func(of *redis.Client) {
		if of.Options().Addr != node.Addr {
			return
		}
		of.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
			err := send()
			if !redistest.Connects(cmds...) {
				time.Sleep(time.Duration(late.Load()))
			}
			return err
		}))
	})
	var failures atomic.Int64
	limiter := runtime.New(runtime.NewRedisStore(client, patient, atOnce), quiet, observing(observe.Observer{
		Failure: func(context.Context, observe.FailureEvent) { failures.Add(1) },
	}))
	defer func() { _ = limiter.Close() }()
	on := func(rule *runtime.Rule, late bool) runtime.Limit {
		for n := 0; ; n++ {
			limit := rule.Limit(key(fmt.Sprint(n)))
			if is := owner(cluster.Slot(bridge.LimiterOf(limiter).RedisKey(limit))) == node; is == late {
				return limit
			}
		}
	}
	for _, rule := range shadowRules() {
		if rule.Algorithm == runtime.LeakyBucket && rule.Wait > 0 {
			continue // a turn does not come back once somebody is behind it
		}
		rule.Window, rule.Max = 8000*time.Hour, 10_000
		for _, by := range []time.Duration{0, 1500 * time.Microsecond, 5 * time.Millisecond, 20 * time.Millisecond} {
			for _, callers := range []int{1, 16} {
				t.Run(fmt.Sprint(rule.Name, " ", by, " ", callers), func(t *testing.T) {
					rule := rule
					rule.Prefix = t.Name() + ":s"
					enforced := &runtime.Rule{Name: "enforced", Prefix: t.Name() + ":e", Window: time.Hour, Max: admits}
					limits := []runtime.Limit{on(enforced, false), on(&rule, true)}
					late.Store(int64(by))
					failures.Store(0)
					var admitted atomic.Int64
					concurrently(callers, func(int) {
						for range 2 * admits / callers {
							if _, err := limiter.Take(context.Background(), limits...); err == nil {
								admitted.Add(1)
							} else if !errors.Is(err, runtime.ErrLimited) {
								t.Error(err)
							}
						}
					})
					late.Store(0)
					equal(t, "admitted", admitted.Load(), admits)
					used := func() int64 { return rule.Max - left(t, limiter, limits[1]) }
					eventually(t, "each call is counted or undecided", func() bool { return used()+failures.Load() == admits })
				})
			}
		}
	}
}
