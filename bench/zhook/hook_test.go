package zhook

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

type hook struct{}

func (hook) DialHook(n redis.DialHook) redis.DialHook {
	return func(ctx context.Context, a, b string) (net.Conn, error) { return n(ctx, a, b) }
}
func (hook) ProcessHook(n redis.ProcessHook) redis.ProcessHook {
	vals := []int64{1764038400000000, 99, 100000}
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch c := cmd.(type) {
		case *redis.Cmd:
			c.SetVal(int64(1))
		default:
			cmd.(interface{ SetVal([]int64) }).SetVal(vals)
		}
		return nil
	}
}
func (hook) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook { return n }

func BenchmarkAlone(b *testing.B) {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	client.AddHook(hook{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Run("ours", func(b *testing.B) {
		l := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		rule := &runtime.Rule{Name: "x", Prefix: "x:", Algorithm: runtime.TokenBucket, Window: time.Hour, Max: 10000}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := l.Take(ctx, rule.Limit(runtime.NewKey().AddString("user0001"))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("evalsha", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := client.EvalSha(ctx, "0123456789012345678901234567890123456789", []string{"floor:" + "user0001"}, time.Now().UnixMicro(), int64(3600000)).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
