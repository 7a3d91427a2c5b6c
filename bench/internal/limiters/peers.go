package limiters

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/gomodule/redigo/redis"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-redisstore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/rategen/rategen/bench/internal/load"
)

// The names of what others are compared with: the limiter, the trip to Redis
// without one, the trip with the least that a limiter can do there, and a window by a client
// that has concurrent commands share trips.
const (
	Base        = "redis_rate"
	Floor       = "PING"
	ScriptFloor = "EVALSHA of TIME, GET and SET"
	SharedFloor = "EVALSHA of TIME, MGET and SETs for up to 128 calls"
	OverRueidis = "fixed window over rueidis"
)

// Peers returns limiters over Redis that others have made.
func Peers() []Limiter {
	return []Limiter{
		{Name: Base, New: newRedisRate},
		{Name: "redis_rate over AutoPipeline", New: newAutoPipeline},
		{Name: OverRueidis, New: newRueidis},
		{Name: "throttled", New: newThrottled},
		{Name: "ulule/limiter", New: newUlule},
		{Name: "sethvargo/go-redisstore", New: newSethvargo},
		{Name: "plain ZSET script", New: newPlain},
		{Name: ScriptFloor, Floor: true, New: newScriptFloor},
		{Name: SharedFloor, Floor: true, New: newSharedFloor},
		{Name: Floor, Floor: true, New: newPing},
	}
}

// answerOf returns the answer of a limiter that admits or refuses a call.
func answerOf(allowed bool, err error) load.Answer {
	if err != nil {
		return load.Failed
	}
	if allowed {
		return load.Admitted
	}
	return load.Refused
}

func newRedisRate(s Server, limits Limits) (load.Take, error) {
	return allow(redis_rate.NewLimiter(s.Client), limits.Level), nil
}

// newAutoPipeline has go-redis send commands of several callers in one pipeline.
func newAutoPipeline(s Server, limits Limits) (load.Take, error) {
	client, err := s.Client.AutoPipeline()
	if err != nil {
		return nil, err
	}
	take := allow(redis_rate.NewLimiter(client), limits.Level)
	return func(ctx context.Context, key string) load.Answer { return take(ctx, "pipeline:"+key) }, nil
}

func allow(limiter *redis_rate.Limiter, l Limit) load.Take {
	limit := redis_rate.Limit{Rate: int(l.Max), Burst: int(l.Max), Period: l.Window}
	return func(ctx context.Context, key string) load.Answer {
		result, err := limiter.Allow(ctx, key, limit)
		return answerOf(err == nil && result.Allowed > 0, err)
	}
}

func newThrottled(s Server, limits Limits) (load.Take, error) {
	store, err := goredisstore.NewCtx(s.Client, "throttled:")
	if err != nil {
		return nil, err
	}
	return throttle(store, limits.Level)
}

// throttle returns throttled's limiter on a store of its. By default it gives
// up on a call when ten others have come between, which is no decision.
func throttle(store throttled.GCRAStoreCtx, l Limit) (load.Take, error) {
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(l.Max), l.Window),
		MaxBurst: int(l.Max) - 1,
	})
	return func(ctx context.Context, key string) load.Answer {
		limited, _, err := limiter.RateLimitCtx(ctx, key, 1)
		return answerOf(!limited, err)
	}, err
}

func newUlule(s Server, limits Limits) (load.Take, error) {
	store, err := ululeredis.NewStoreWithOptions(s.Client, ulule.StoreOptions{Prefix: "ulule"})
	if err != nil {
		return nil, err
	}
	return count(store, limits.Level), nil
}

// count returns ulule's limiter on a store of its.
func count(store ulule.Store, l Limit) load.Take {
	limiter := ulule.New(store, ulule.Rate{Period: l.Window, Limit: l.Max})
	return func(ctx context.Context, key string) load.Answer {
		state, err := limiter.Get(ctx, key)
		return answerOf(!state.Reached, err)
	}
}

// newSethvargo has its pool not test every connection with a PING before each
// call, as it does by default.
func newSethvargo(s Server, limits Limits) (load.Take, error) {
	l := limits.Level
	store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: uint64(l.Max), Interval: l.Window}, &redis.Pool{
		MaxActive: s.Connections,
		MaxIdle:   s.Connections,
		Wait:      true,
		Dial:      func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr) },
	})
	if err != nil {
		return nil, err
	}
	take := takeFrom(store)
	return func(ctx context.Context, key string) load.Answer { return take(ctx, "sethvargo:"+key) }, nil
}

func takeFrom(store limiter.Store) load.Take {
	return func(ctx context.Context, key string) load.Answer {
		_, _, _, ok, err := store.Take(ctx, key)
		return answerOf(ok, err)
	}
}
