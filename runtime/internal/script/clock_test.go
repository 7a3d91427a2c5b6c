package script_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/route"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// century is a time that no test reaches by itself, so that Redis expires nothing of a test
// that sets the clock.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

// clockKey is the Redis key that a store with a clock of its own reads its time from, in
// microseconds.
const clockKey = "test:clock"

// onClock makes a script take its time from clockKey, and keys expire by it.
var onClock = strings.NewReplacer(
	"redis.call('TIME')", "{string.match(redis.call('GET', '"+clockKey+"'), '^(%d+)%d%d%d%d%d%d$'), "+
		"string.match(redis.call('GET', '"+clockKey+"'), '^%d-0?0?0?0?0?(%d%d?%d?%d?%d?%d?)$')}",
	"(at - clock) / 1000)", "at / 1000)", // of lifetime
	"call('PTTL', key)", "("+expireTimeOf("key")+" * 1000 - clock) / 1000",
	"'PEXPIRE'", "'PEXPIREAT'",
	"'PX'", "'PXAT'",
)

// expireTimeOf returns Lua that is when a key expires, in milliseconds, for servers
// without PEXPIRETIME, which came with Redis 7.0. Before that time goes on while a
// script runs, so it is read in one and the same millisecond.
func expireTimeOf(key string) string {
	return strings.ReplaceAll(`(function()
  while true do
    local before, left, after = redis.call('TIME'), redis.call('PTTL', KEY), redis.call('TIME')
    local now = before[1] * 1000 + math.floor(before[2] / 1000)
    if now == after[1] * 1000 + math.floor(after[2] / 1000) then
      return left < 0 and left or now + left
    end
  end
end)()`, "KEY", key)
}

var onClockTexts sync.Map

// timed returns a store whose scripts, changed by change if that is not nil, read their time
// from a key.
func timed(client *redis.Client, change func(string) string, changes ...func(*batch.Config)) *route.Router {
	return newStore(client, append(changes, func(cfg *batch.Config) {
		cfg.Library.Change = func(text string) string {
			timed, ok := onClockTexts.Load(text)
			if !ok {
				timed, _ = onClockTexts.LoadOrStore(text, onClock.Replace(mutated(text)))
			}
			if change == nil {
				return timed.(string)
			}
			return change(timed.(string))
		}
	})...)
}

// expire sets the clock that the scripts read to the time that the test pretends
// it is, and does with keys what Redis does by itself.
func expire(ctx context.Context, client *redis.Client, now int64, keys ...string) error {
	return expiry.Run(ctx, client, append([]string{clockKey}, keys...), now).Err()
}

// expireTime returns when a key expires, as PEXPIRETIME does.
func expireTime(ctx context.Context, client *redis.Client, key string) time.Duration {
	at, _ := whenExpired.Run(ctx, client, []string{key}).Int64()
	return time.Duration(at) * time.Millisecond
}

var whenExpired = redis.NewScript("return " + expireTimeOf("KEYS[1]"))

// expiry expires the keys behind the clock's, and expireAll those that match a pattern.
var expiry, expireAll = redis.NewScript("local keys = KEYS" + expiring), redis.NewScript("local keys = redis.call('KEYS', ARGV[2])" + expiring)

var expiring = `
redis.call('SET', KEYS[1], ARGV[1])
for _, key in ipairs(keys) do
  if key ~= KEYS[1] then
    local at = ` + expireTimeOf("key") + `
    if at > 0 and at <= math.floor(ARGV[1] / 1000) then
      redis.call('DEL', key)
    end
  end
end
return 0`

// injected returns a subject on a timed store of its own.
func injected(t *testing.T, client *redis.Client, change func(string) string) storetest.Subject {
	return onTime(t, client, timed(client, change))
}

// onTime returns a subject on a timed store, on which it is the next century.
func onTime(t *testing.T, client *redis.Client, store runtime.Store) storetest.Subject {
	now := century.UnixMicro()
	set := func() {
		ok(t, expireAll.Run(t.Context(), client, []string{clockKey}, now, storetest.Prefix(t)+"*").Err())
	}
	set()
	return storetest.Subject{
		Store: store, Exact: true,
		Now: func() int64 { return now },
		Advance: func(d time.Duration) {
			now += d.Microseconds()
			set()
		},
	}
}
