package runtime

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mutation names the variable of the environment that changes the text of
// every script of a store with [Mutate]: a JSON array of the text to replace
// and its replacement.
const Mutation = "RATEGEN_TEST_MUTATION"

var mutation [2]string

func init() {
	if text := os.Getenv(Mutation); text != "" {
		if err := json.Unmarshal([]byte(text), &mutation); err != nil {
			panic(err)
		}
	}
}

func mutate(text string) string {
	if mutation[0] == "" {
		return text
	}
	return strings.ReplaceAll(text, mutation[0], mutation[1])
}

// Stores check for sharding only with CheckSharding: some tests count commands.
func init() { checkSharding = false }

// CheckSharding is a [RedisOption] that has the store check whether its server
// shards keys, again after a while if that is not clear.
func CheckSharding(again time.Duration) RedisOption {
	return func(s *RedisStore) {
		s.sharding = newShardingCheck(s)
		s.sharding.Again = again
	}
}

// ShardingChecks returns how many checks have been made.
func (s *RedisStore) ShardingChecks() int { return s.sharding.Made() }

// Change is a [RedisOption] that changes the scripts.
func Change(change func(string) string) RedisOption {
	return func(s *RedisStore) {
		s.cfg.Library.Change = func(text string) string { return change(mutate(text)) }
	}
}

// Mutate is a [RedisOption] that changes the scripts if Mutation says so. Stores without
// changes share their scripts, which take a while to make.
func Mutate(s *RedisStore) {
	if mutation[0] != "" {
		s.cfg.Library.Change = mutate
	}
}

// OwnScripts is a [RedisOption] that has a store share no scripts: which mixtures of
// algorithms have one depends on those that came before.
func OwnScripts(s *RedisStore) { s.cfg.Library.Change = mutate }

// SetClock makes the store take its time from clock, in microseconds.
func (s *MemoryStore) SetClock(clock func() int64) {
	WithClock(func() time.Time { return time.UnixMicro(clock()) })(s)
	s.states.Clock = s.clock
}

// ClockKey is the Redis key that a store with a clock of its own reads its
// time from, in microseconds.
const ClockKey = "test:clock"

// onClock makes a script take its time from ClockKey, and keys expire by it.
var onClock = strings.NewReplacer(
	"redis.call('TIME')", "{string.match(redis.call('GET', '"+ClockKey+"'), '^(%d+)%d%d%d%d%d%d$'), "+
		"string.match(redis.call('GET', '"+ClockKey+"'), '^%d-0?0?0?0?0?(%d%d?%d?%d?%d?%d?)$')}",
	"(at - clock) / 1000)", "at / 1000)", // of lifetime
	"call('PTTL', key)", "("+ExpireTime("key")+" * 1000 - clock) / 1000",
	"'PEXPIRE'", "'PEXPIREAT'",
	"'PX'", "'PXAT'",
)

// ExpireTime returns Lua that is when a key expires, in milliseconds, for servers
// without PEXPIRETIME, which came with Redis 7.0. Before that time goes on while a
// script runs, so it is read in one and the same millisecond.
func ExpireTime(key string) string {
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

// SetScript changes the text of the script, if change is not nil, and makes it take its
// time from ClockKey.
func (s *RedisStore) SetScript(change func(string) string) {
	s.cfg.Denials = nil // their time is the process's
	s.cfg.Library.Change = func(text string) string {
		timed, ok := onClockTexts.Load(text)
		if !ok {
			timed, _ = onClockTexts.LoadOrStore(text, onClock.Replace(mutate(text)))
		}
		if change == nil {
			return timed.(string)
		}
		return change(timed.(string))
	}
}

var onClockTexts sync.Map

// Wide gives the store scripts that know all algorithms, as it has for mixtures that
// come after many others.
func (s *RedisStore) Wide() { s.cfg.Library.Wide = true }

// TellBreaker has the limiter report the circuit breaker of a node.
func (l *Limiter) TellBreaker(node string, open bool) { l.events.breaker(node, open) }

// TellBreaker has the limiters on the store report the circuit breaker of a node.
func (s *RedisStore) TellBreaker(node string, open bool) { s.heard().breaker(node, open) }

// Keys returns how many keys the store holds.
func (s *MemoryStore) Keys() int { return s.states.Len() }

// Waiting returns how many calls wait for a batch.
func (s *RedisStore) Waiting() int {
	waiting, _ := s.router.Load()
	return waiting
}

// InFlight returns how many batches are under way.
func (s *RedisStore) InFlight() int {
	_, batches := s.router.Load()
	return batches
}

// Linger is a [RedisOption] that sets after how long a waiting call has one more
// batch sent.
func Linger(d time.Duration) RedisOption {
	return func(s *RedisStore) { s.cfg.Linger = d }
}

// Wall is a [RedisOption] that has the store expect the time of servers by another clock, in
// microseconds.
func Wall(clock func() int64) RedisOption {
	return func(s *RedisStore) { s.cfg.Wall = clock }
}

// Beside is a [RedisOption] that sets how much longer a call waits for limits in shadow
// mode in slots of their own.
func Beside(d time.Duration) RedisOption {
	return func(s *RedisStore) { s.cfg.Beside = d }
}

// KnownRules returns for how many rules the limiter keeps something, at most.
func (l *Limiter) KnownRules() (most int) {
	if o := l.overrides.Load(); o != nil {
		most = o.Known()
	}
	return max(most, l.events.log.Known(), l.factors.Known())
}

// Lines returns how many lines for permits there are, and calls in them.
func (l *Limiter) Lines() int {
	lines, calls := l.permits.Lines()
	return lines + calls
}

// A SharedMemory is a MemoryStore that limiters lease from, as if it was shared with
// other processes.
type SharedMemory struct{ *MemoryStore }

func (SharedMemory) leases() {}

// A Shared is a store that is no MemoryStore for limiters, which lease from it as if it was
// shared with other processes.
type Shared struct{ Store }

func (Shared) leases() {}

// ChargedAt returns the time that the first limit's charge counts as, or 0.
func (d *Decision) ChargedAt() int64 { return d.one.at }

// Leases returns for how many keys the limiter holds or has held a lease, and how many
// units these have left.
func (l *Limiter) Leases() (keys int, units int64) {
	return l.engine.Leases.Count()
}

// FewestAllocs returns how often f allocates when pooled memory is at hand, which the race
// detector drops at random.
func FewestAllocs(f func()) float64 {
	least := testing.AllocsPerRun(1, f)
	for tries := 0; least > 0 && tries < 1000; tries++ {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}
