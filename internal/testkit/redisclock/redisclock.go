// Package redisclock has a real Redis server go by a clock that a test sets. Scripts read the
// time from a key, and keys expire by it. The clock shows a time that the server itself does
// not reach while the test runs, so that it expires nothing.
package redisclock

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Key is the Redis key that scripts read the time from, in microseconds.
const Key = "test:clock"

// Script returns a script of package lua that takes its time from [Key], and has keys expire
// by it.
func Script(text string) string { return onClock.Replace(text) }

// timed are scripts that read the time, and how they read it from [Key].
var timed = []string{
	"redis.call('TIME')", "{string.match(redis.call('GET', '" + Key + "'), '^(%d+)%d%d%d%d%d%d$'), " +
		"string.match(redis.call('GET', '" + Key + "'), '^%d-0?0?0?0?0?(%d%d?%d?%d?%d?%d?)$')}",
}

var onTime, onClock = strings.NewReplacer(timed...), strings.NewReplacer(append(timed,
	"(at - clock) / 1000)", "at / 1000)", // of lifetime
	"call('PTTL', key)", "("+expireTimeOf("key")+" * 1000 - clock) / 1000",
	"'PEXPIRE'", "'PEXPIREAT'",
	"'PX'", "'PXAT'",
)...)

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

// Set sets the clock, in microseconds, and does with keys what Redis does by itself.
func Set(ctx context.Context, client redis.Scripter, now int64, keys ...string) error {
	return expiry.Run(ctx, client, append([]string{Key}, keys...), now).Err()
}

// SetAll is Set for all keys that match a pattern.
func SetAll(ctx context.Context, client redis.Scripter, now int64, pattern string) error {
	return expireAll.Run(ctx, client, []string{Key}, now, pattern).Err()
}

// ExpireTime returns when a key expires, as PEXPIRETIME does.
func ExpireTime(ctx context.Context, client redis.Scripter, key string) time.Duration {
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
