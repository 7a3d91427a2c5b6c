package limiters

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rategen/rategen/bench/internal/load"
)

// fixedWindow counts the calls of a window in one key, and keeps when that ends in
// another one, by the client's clock.
var fixedWindow = rueidis.NewLuaScript(`
local now, over = tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2]))
if not over or over < now then
  over = tonumber(ARGV[2])
  redis.call('SET', KEYS[1], 0, 'PXAT', over + 1000)
  redis.call('SET', KEYS[2], over, 'PXAT', over + 1000)
end
return {redis.call('INCRBY', KEYS[1], 1), over}
`)

// newRueidis decides as rueidislimiter does, which is no module that could be
// required: a fixed window, one script a call, by a client that has concurrent
// commands share trips.
func newRueidis(s Server, limits Limits) (load.Take, error) {
	window, limit := limits.Level.Window.Milliseconds(), limits.Level.Max
	return func(ctx context.Context, key string) load.Answer {
		now := time.Now().UnixMilli()
		counts, err := fixedWindow.Exec(ctx, s.Rueidis, []string{"rueidis:{" + key + "}", "rueidis:{" + key + "}:ex"},
			[]string{strconv.FormatInt(now, 10), strconv.FormatInt(now+window, 10)}).AsIntSlice()
		return answerOf(err == nil && counts[0] <= limit, err)
	}, nil
}

// NewRueidis returns a client of rueidis with its default options, but for the cache
// that limiters do not use.
func NewRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidisOption(addr))
}

func rueidisOption(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
}
