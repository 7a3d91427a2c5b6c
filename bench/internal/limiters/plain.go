package limiters

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
)

// plain is the sliding window that articles show. It believes the client's
// clock, so it is only as exact as the clocks of all clients agree.
var plain = redis.NewScript(`
local now, window, max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
if redis.call('ZCARD', KEYS[1]) >= max then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], window)
return 1
`)

func newPlain(s Server, limits Limits) (load.Take, error) {
	var calls atomic.Int64
	window, limit := limits.Log.Window.Milliseconds(), limits.Log.Max
	return func(ctx context.Context, key string) load.Answer {
		now := time.Now().UnixMilli()
		member := strconv.FormatInt(now, 10) + "-" + strconv.FormatInt(calls.Add(1), 10)
		allowed, err := plain.Run(ctx, s.Client, []string{"plain:" + key}, now, window, limit, member).Int()
		return answerOf(allowed == 1, err)
	}, nil
}
