package runtime_test

import (
	"context"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// BenchmarkSettle measures what settling adds to a call, with 256 callers on 1,000
// keys of a real Redis.
func BenchmarkSettle(b *testing.B) {
	const callers, keys = 256, 1000
	server := redistest.Start(b)
	for _, algorithm := range []*runtime.Rule{
		{Name: "zset"}, {Name: "packed", Storage: runtime.Packed},
		{Name: "bucket", Algorithm: runtime.TokenBucket}, {Name: "fixed", Algorithm: runtime.FixedWindow},
	} {
		rule := *algorithm
		rule.Window, rule.Max = time.Second, 1_000_000
		for name, settled := range map[string]int64{"no": 2, "refund": 0, "less": 1, "more": 3} {
			b.Run(rule.Name+"/"+name, func(b *testing.B) {
				client := server.Client(b, func(o *redis.Options) { runtime.TuneRedis(o) })
				client.FlushDB(context.Background())
				limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Second)), quiet, closed)
				limits := make([]runtime.Limit, keys)
				for i := range limits {
					limits[i] = rule.Limit(runtime.NewKey().AddString("user-" + strconv.Itoa(i))).WithCost(2)
				}
				var next atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(callers / max(1, goruntime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					ctx := context.Background()
					for i := next.Add(7919); pb.Next(); i += 31 {
						limit := limits[i%keys]
						d, err := limiter.Take(ctx, limit)
						if err != nil {
							b.Fatal(err)
						}
						if settled != 2 {
							limiter.SettleLater(ctx, d, limit.WithSettled(settled))
						}
					}
				})
				if err := limiter.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
