package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// BenchmarkRedisTake has 64 callers ask about 1,000 keys: on a server, where a
// trip is one script, and on a cluster, where it is one for nearly every call.
// Four allocations a call are the bound, of which one is the key's.
func BenchmarkRedisTake(b *testing.B) {
	b.Run("server", func(b *testing.B) { benchmarkRedisTake(b, redistest.Start(b).Client(b)) })
	b.Run("cluster", func(b *testing.B) {
		cluster := redistest.StartCluster(b)
		cluster.WaitReady()
		benchmarkRedisTake(b, cluster.Client(b))
	})
}

func benchmarkRedisTake(b *testing.B, client redis.UniversalClient) {
	const callers, keys = 64, 1000
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "bench:", Window: time.Hour, Max: 1_000_000_000, Algorithm: runtime.TokenBucket}
	ids := make([]string, keys)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	run := func(calls int64) {
		var last atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				for i := last.Add(1); i <= calls; i = last.Add(1) {
					if _, err := limiter.Take(ctx, rule.Limit(key(ids[i%keys]))); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	run(5 * keys)
	b.ReportAllocs()
	b.ResetTimer()
	run(int64(b.N))
}
