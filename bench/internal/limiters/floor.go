package limiters

import (
	"context"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
)

// least is the least that a limiter does which goes by the clock of Redis: it
// looks at the clock, reads what it knows of a key, and writes that anew. It
// decides nothing.
const least = `redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

// newScriptFloor sends the script as a user of go-redis does. What it writes is
// a time of 16 digits.
func newScriptFloor(s Server, limits Limits) (load.Take, error) {
	sha, err := s.Client.ScriptLoad(context.Background(), least).Result()
	if err != nil {
		return nil, err
	}
	window := limits.Level.Window.Milliseconds()
	return func(ctx context.Context, key string) load.Answer {
		return answerOf(true, s.Client.EvalSha(ctx, sha, []string{"floor:" + key}, time.Now().UnixMicro(), window).Err())
	}, nil
}

func newPing(s Server, _ Limits) (load.Take, error) {
	return func(ctx context.Context, _ string) load.Answer {
		return answerOf(true, s.Client.Ping(ctx).Err())
	}, nil
}
