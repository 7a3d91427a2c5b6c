package script_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// executedBy returns how often scripts executed each of their commands during do.
func executedBy(t *testing.T, client *redis.Client, do func()) map[string]int {
	t.Helper()
	known, calls := storetest.Commands(), commandsOf(t, client, do)
	maps.DeleteFunc(calls, func(name string, _ int) bool { return !slices.Contains(known, name) }) // the client's own
	return calls
}

// commandsOf returns how often Redis executed each command during do.
func commandsOf(t testing.TB, client *redis.Client, do func()) map[string]int {
	t.Helper()
	ok(t, client.ConfigResetStat(t.Context()).Err())
	do()
	calls := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`).FindAllStringSubmatch(client.Info(t.Context(), "commandstats").Val(), -1) {
		calls[m[1]], _ = strconv.Atoi(m[2])
	}
	return calls
}

// writes returns how many of a script's commands write.
func writes(calls map[string]int) (n int) {
	for _, command := range writing {
		n += calls[command]
	}
	return n
}

// TestBlockWrites wants a block to be written once, by the refusal that begins it,
// and to cost callers who are not blocked neither a command nor an argument.
func TestBlockWrites(t *testing.T) {
	client := ownRedis(t)
	args := 0 // of scripts
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		if cmds[0].Name() == "evalsha" {
			args += len(cmds[0].Args())
		}
		return send()
	}))
	limiter := newLimiter(client)
	for name, plain := range storetest.BlockingWaysOf(1000*time.Hour, 10) {
		blocking := *plain
		blocking.Prefix, blocking.Block = "b:"+plain.Prefix, 2000*time.Hour // the key must live longer for it
		admits := func(rule *runtime.Rule) (calls map[string]int, sent int) {
			args = 0
			calls = executedBy(t, client, func() { taken(t, limiter, rule.Limit(nil)) })
			// At the start of a stretch of time a log needs two more, and a window is set anew.
			calls["set"] += calls["setrange"]
			for _, name := range []string{"pexpire", "zcard", "setrange"} {
				delete(calls, name)
			}
			return calls, args
		}
		refuses := func(cost int64) map[string]int {
			return executedBy(t, client, func() {
				if d, _ := refused(t, limiter, blocking.Limit(nil).WithCost(cost)); !d.Blocked {
					t.Errorf("%s: cost %d: got %+v", name, cost, d)
				}
			})
		}
		for range 2 { // and the scripts are known
			taken(t, limiter, plain.Limit(nil).WithCost(2))
			taken(t, limiter, blocking.Limit(nil).WithCost(2))
		}
		without, least := admits(plain)
		with, most := admits(&blocking)
		same(t, name+": commands of an admitted call", without, with)
		equal(t, name+": arguments", most, least)
		// The write itself, and the expiry.
		if first := refuses(6); writes(first) != 2 || first["pexpire"] != 1 {
			t.Errorf("%s: the refusal that blocks executes %v", name, first)
		}
		state := client.Dump(t.Context(), onlyKey(t, client, blocking.Prefix)).Val()
		for _, cost := range []int64{6, 1, 10} {
			equal(t, name+": writes of a blocked call", writes(refuses(cost)), 0)
		}
		if d, err := limiter.Peek(t.Context(), blocking.Limit(nil)); err != nil || !d.Blocked {
			t.Errorf("%s: peek: got %+v, %v", name, d, err)
		}
		if state == "" || state != client.Dump(t.Context(), onlyKey(t, client, blocking.Prefix)).Val() {
			t.Errorf("%s: blocked calls have changed the key", name)
		}
		client.FlushDB(t.Context())
	}
}

// TestBlockExpiry wants a key to live until its block is over, and not for ever.
func TestBlockExpiry(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	for _, block := range []time.Duration{time.Minute, 100 * time.Hour} { // shorter and longer than the window
		for name, rule := range storetest.BlockingWaysOf(10*time.Hour, 10) {
			rule.Block = block
			limit := rule.Limit(key("k"))
			taken(t, limiter, limit.WithCost(10))
			lives := func(when string) {
				t.Helper()
				begin := time.Now()
				rest := blocked(t, limiter, limit).RetryAfter
				whole, err := limiter.Peek(t.Context(), limit)
				ttl := client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val()
				if err != nil || ttl < rest-time.Second-time.Since(begin) || ttl > max(rest, whole.ResetAfter)+2*time.Second {
					t.Errorf("%s, %s: expires in %v, want %v or a little more", name, when, ttl, max(rest, whole.ResetAfter))
				}
			}
			lives("begun")
			lives("tried again")
			client.Persist(t.Context(), onlyKey(t, client, rule.Prefix))
			lives("without an expiry")
			client.Expire(t.Context(), onlyKey(t, client, rule.Prefix), 30*time.Second)
			lives("with one that is too early")
			ok(t, limiter.Reset(t.Context(), limit))
		}
	}
}

// TestBlockOutlivesCharges has others charge a bucket whose key they would have expire before a tenant's block ends.
func TestBlockOutlivesCharges(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	rule := &runtime.Rule{Name: "shared", Window: time.Hour, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 4, Block: 100 * time.Hour}
	share := func(tenant string) runtime.Limit { return rule.Limit(nil).WithShare(key(tenant), 1) }
	taken(t, limiter, share("a").WithCost(6))
	blocked(t, limiter, share("a"))
	client.Expire(t.Context(), onlyKey(t, client, rule.Prefix), 30*time.Second)
	taken(t, limiter, share("b"))
	if ttl := client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val(); ttl < 99*time.Hour {
		t.Errorf("the key of a block for 100 hours expires in %v", ttl)
	}
}

// TestBlockWithoutMemory wants a Redis that refuses writes to refuse all the same.
func TestBlockWithoutMemory(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 1}
	rules := storetest.BlockingWaysOf(1000*time.Hour, 10)
	for _, rule := range rules {
		rule.Block = time.Hour
		taken(t, limiter, rule.Limit(nil).WithCost(10))
	}
	client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction")
	for _, blocked := range []bool{false, true} {
		ok(t, client.ConfigSet(t.Context(), "maxmemory", map[bool]string{false: "1", true: "0"}[blocked]).Err())
		for name, rule := range rules {
			for _, limits := range [][]runtime.Limit{{rule.Limit(nil)}, {other.Limit(nil), rule.Limit(nil)}} {
				d, err := limiter.Take(t.Context(), limits...)
				if !errors.Is(err, runtime.ErrLimited) || d.Blocked != blocked || d.RetryAfter <= 0 || d.Rule != rule.Name {
					t.Errorf("%s: got %+v, %v, want a refusal, blocked %v", name, d, err, blocked)
				}
			}
		}
	}
}

// TestBlockLeavesNothing wants the first charge after a block to remove it from the key, so that
// later calls do not read it, and what stays to expire if all that was charged before is given
// back.
func TestBlockLeavesNothing(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	for name, rule := range storetest.BlockingWaysOf(1000*time.Hour, 10) {
		rule.Block = 30 * time.Millisecond
		limit, returned := rule.Limit(key("charged")), rule.Limit(key("returned"))
		id := bridge.LimiterOf(limiter).RedisKey(limit)
		holds := func() bool {
			if client.Type(t.Context(), id).Val() == "zset" {
				return client.ZCount(t.Context(), id, "inf", "inf").Val() > 0
			}
			return strings.Trim(client.Get(t.Context(), id).Val()[1:8], "\x00") != ""
		}
		taken(t, limiter, limit.WithCost(6))
		d := taken(t, limiter, returned.WithCost(6))
		blocked(t, limiter, returned.WithCost(6))
		blocked(t, limiter, limit.WithCost(6))
		if !holds() {
			t.Errorf("%s: the key holds no block", name)
		}
		eventually(t, "the block is over", func() bool { return passing(t, limiter, limit, 1) > 0 })
		if holds() {
			t.Errorf("%s: the key still holds the block", name)
		}
		time.Sleep(2 * time.Millisecond) // it is over for longer than the unit of PTTL
		refunded(t, limiter, d)
		if ttl := client.PTTL(t.Context(), bridge.LimiterOf(limiter).RedisKey(returned)).Val(); ttl == -1 {
			t.Errorf("%s: the key lives for ever", name)
		}
	}
}
