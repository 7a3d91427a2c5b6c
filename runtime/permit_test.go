package runtime_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// permitKey is where Redis keeps the permits of permitRule for the key "k".
const permitKey = "rate_limit:permits:k%permits"

// permitsHeld returns how many permits Redis knows of, beside the three members of a key
// that are none.
func permitsHeld(client redis.Cmdable) int64 {
	return client.ZCard(context.Background(), permitKey).Val() - 3
}

// Calls that share a trip, and are merged into one charge, hold permits of their
// own: each returns as many as it has got.
func TestPermitsOfSharedTrips(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	rule := permitRule(400)
	rule.Window = time.Hour // none is renewed meanwhile
	limit := rule.Limit(key("k"))
	costs := []int64{3, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for range 2 {
		calls, held := make([]runtime.Decision, 250), int64(0)
		concurrently(len(calls), func(i int) {
			calls[i] = taken(t, limiter, limit.WithCost(costs[i%10]))
			atomic.AddInt64(&held, costs[i%10])
		})
		for _, i := range rand.Perm(len(calls)) {
			if n := permitsHeld(client); n != held {
				t.Fatalf("%d members for %d permits", n, held)
			}
			settled(t, limiter, calls[i])
			held -= costs[i%10]
		}
		wantLeft(t, limiter, limit, 400)
	}
}

// The answer for a caller who has given up returns its permits.
func TestPermitsOfLateAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	slow := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	limiter := runtime.New(runtime.NewRedisStore(slow, runtime.WithTimeout(150*time.Millisecond)), quiet, closed)
	near := server.Client(t)
	limit := permitRule(10).Limit(key("k"))
	reach := func() { // the script and the connection are warm then, and Redis knows of no permit
		eventually(t, "redis is reached", func() bool {
			d, err := limiter.Take(t.Context(), limit)
			return err == nil && limiter.Settle(t.Context(), d) == nil
		})
		near.Del(t.Context(), permitKey)
	}
	returns := func(whose string) {
		eventually(t, "permits of "+whose+" are returned", func() bool {
			return near.ZScore(t.Context(), permitKey, "mean").Val() > 0 && permitsHeld(near) == 0
		})
	}
	reach()
	proxy.Delay(300 * time.Millisecond) // each way, or altogether: beyond the timeout in both cases
	refusedAs(t, limiter, runtime.ErrUnavailable, limit.WithCost(3))
	returns("a late answer")

	proxy.Pass()
	reach()
	proxy.Delay(20 * time.Millisecond)
	given, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if d, err := limiter.Take(given, limit); err == nil { // on a busy machine, which may also return it later
		_ = limiter.Settle(t.Context(), d)
	}
	returns("a caller who has gone")
	equal(t, "in flight", bridge.LimiterOf(limiter).Permits()["permits"], 0)
}
