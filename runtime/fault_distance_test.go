package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestDistance wants a Redis to decide that is so far away that there is time
// for a call, but not for a call and the making of a connection before it. It is
// to come to have connections all the same, also with a client that gives one up
// when the call's time is over.
func TestDistance(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*redis.Options){
		"default options": func(*redis.Options) {},
		"contexts":        func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"tuned":           func(o *redis.Options) { runtime.TuneRedis(o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, redistest.Start(t).Addr)
			proxy.Delay(20 * time.Millisecond)
			options := &redis.Options{Addr: proxy.Addr}
			tune(options)
			client := redis.NewClient(options)
			t.Cleanup(func() { _ = client.Close() })
			limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
			limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10_000}).Limit(nil)
			for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
				_, err := limiter.Take(context.Background(), limit)
				if err == nil {
					t.Logf("decided after %v", time.Since(begin))
					return
				}
				if time.Since(begin) > comeback {
					t.Fatalf("not decided within %v: %v", comeback, err)
				}
			}
		})
	}
}
