package runtime_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// executed returns how often scripts executed each of their commands during do.
func executed(t *testing.T, client *redis.Client, do func()) map[string]int {
	t.Helper()
	known := rights(t)
	calls := commandsOf(t, client, do)
	maps.DeleteFunc(calls, func(name string, _ int) bool { return !slices.Contains(known, "+"+name) }) // the client's own
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

// writes are the commands of the scripts that write.
var writes = []string{"zadd", "zrem", "zremrangebyrank", "append", "set", "setrange", "unlink", "pexpire"}

// TestBlockWrites wants a block to be written once, by the denial that begins it,
// and to cost callers who are not blocked neither a command nor an argument.
func TestBlockWrites(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	args := 0 // of scripts
	client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
		if cmds[0].Name() == "evalsha" {
			args += len(cmds[0].Args())
		}
		return send()
	}))
	store := runtime.NewRedisStore(client, patient, atOnce)
	limiter := runtime.New(store, quiet, closed)
	for name, plain := range blockingRules(1000*time.Hour, 10) {
		blocking := *plain
		blocking.Prefix, blocking.Block = "b:"+plain.Prefix, 2000*time.Hour // the key must live longer for it
		take := func(rule *runtime.Rule, cost int64, admitted bool) func() {
			return func() {
				d, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(cost))
				if (err == nil) != admitted || err != nil && d.Blocked != (rule.Block > 0) {
					t.Errorf("%s: cost %d: got %+v, %v", name, cost, d, err)
				}
			}
		}
		for range 2 { // and the scripts are known
			take(plain, 2, true)()
			take(&blocking, 2, true)()
		}
		args = 0
		without := executed(t, client, take(plain, 1, true))
		least := args
		with := executed(t, client, take(&blocking, 1, true))
		most := args - least
		if diff := cmp.Diff(withoutStretches(without), withoutStretches(with)); diff != "" || most != least {
			t.Errorf("%s: %d arguments, %d without a block; commands of an admitted call (-without +with):\n%s", name, most, least, diff)
		}
		written := func(calls map[string]int) (names []string) {
			for _, command := range writes {
				for range calls[command] {
					names = append(names, command)
				}
			}
			return names
		}
		// The write itself, and the expiry.
		if first := executed(t, client, take(&blocking, 6, false)); len(written(first)) != 2 || !slices.Contains(written(first), "pexpire") {
			t.Errorf("%s: the denial that blocks writes by %v", name, written(first))
		}
		state := client.Dump(t.Context(), onlyKey(t, client, blocking.Prefix)).Val()
		for _, cost := range []int64{6, 1, 10} {
			if next := executed(t, client, take(&blocking, cost, false)); len(written(next)) > 0 {
				t.Errorf("%s: a blocked call writes by %v", name, written(next))
			}
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

// withoutStretches leaves out commands that a log needs at the start of a stretch of time
// only.
func withoutStretches(calls map[string]int) map[string]int {
	for _, name := range []string{"pexpire", "zcard"} {
		delete(calls, name)
	}
	return calls
}

// TestBlockExpiry wants a key to live until its block is over, and not for ever.
func TestBlockExpiry(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client, atOnce)
	for _, block := range []time.Duration{time.Minute, 100 * time.Hour} { // shorter and longer than the window
		for name, rule := range blockingRules(10*time.Hour, 10) {
			rule.Block = block
			limit := rule.Limit(key("k"))
			taken(t, limiter, limit.WithCost(10))
			lives := func(when string) {
				t.Helper()
				rest := blockedBy(t, limiter, limit).RetryAfter
				whole, err := limiter.Peek(t.Context(), limit)
				ttl := client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val()
				if err != nil || ttl < rest-time.Second || ttl > max(rest, whole.ResetAfter)+2*time.Second {
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

// TestBlockWithoutMemory wants a Redis that refuses writes to deny all the same.
func TestBlockWithoutMemory(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client, atOnce)
	rules := blockingRules(1000*time.Hour, 10)
	for _, rule := range rules {
		rule.Block = time.Hour
		taken(t, limiter, rule.Limit(nil).WithCost(10))
	}
	denied := func(blocked bool) {
		t.Helper()
		other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 1}
		for name, rule := range rules {
			for _, limits := range [][]runtime.Limit{{rule.Limit(nil)}, {other.Limit(nil), rule.Limit(nil)}} {
				d, err := limiter.Take(t.Context(), limits...)
				if !errors.Is(err, runtime.ErrLimited) || d.Blocked != blocked || d.RetryAfter <= 0 || d.Rule != rule.Name {
					t.Errorf("%s: got %+v, %v, want a denial, blocked %v", name, d, err, blocked)
				}
			}
		}
	}
	client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction")
	ok(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	denied(false)
	ok(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	denied(true)
}

// testBlockInParts wants a call whose keys lie on several masters to block where
// there is no room for it, and nowhere else: what is charged and given back
// blocks nobody.
func testBlockInParts(t *testing.T, cluster *redistest.Cluster, limiter *runtime.Limiter) {
	rules := tripleRule(t, cluster, "block:")
	for _, rule := range rules {
		rule.Block = time.Hour // the tag at the end changes the slots
	}
	for i := 0; len(masters(cluster, rules)) < len(rules); i++ {
		for j, rule := range rules {
			rule.Prefix = "block:" + strconv.Itoa(i*(j+1)) + ":" + strconv.Itoa(j) + ":"
		}
	}
	taken(t, limiter, rules[1].Limit(key("k")).WithCost(10))
	all := []runtime.Limit{rules[0].Limit(key("k")), rules[1].Limit(key("k")), rules[2].Limit(key("k")).WithCost(10)}
	for range 3 {
		if limited := blockedBy(t, limiter, all...); limited.Rule != rules[1].Name {
			t.Errorf("blocked by %q", limited.Rule)
		}
	}
	for i, blocked := range []bool{false, true, false} {
		d, err := limiter.Peek(t.Context(), rules[i].Limit(key("k")))
		if err != nil || d.Blocked != blocked || !blocked && d.Remaining != 10 {
			t.Errorf("limit %d: got %+v, %v, want it blocked: %v", i, d, err, blocked)
		}
	}
	ok(t, limiter.Reset(t.Context(), rules[1].Limit(key("k"))))
	if _, err := limiter.Take(t.Context(), all...); err != nil {
		t.Errorf("after a reset: %v", err)
	}
}

// masters returns the masters that the keys "k" of three rules with a block lie on.
func masters(cluster *redistest.Cluster, rules []*runtime.Rule) map[*redistest.Server]bool {
	found, owner := map[*redistest.Server]bool{}, cluster.Owners()
	for i, tag := range []string{"", "%window", "%token"} {
		found[owner(cluster.Slot(rules[i].Prefix+"k"+tag+"%block"))] = true
	}
	return found
}

// TestBlockLeavesNothing wants the first charge after a block to remove it from the
// key, so that later calls do not read it.
func TestBlockLeavesNothing(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client, atOnce)
	for name, rule := range blockingRules(1000*time.Hour, 10) {
		rule.Block = 30 * time.Millisecond
		limit := rule.Limit(nil)
		taken(t, limiter, limit.WithCost(6))
		holds := func() bool {
			key := onlyKey(t, client, rule.Prefix)
			if client.Type(t.Context(), key).Val() == "zset" {
				return client.ZCount(t.Context(), key, "inf", "inf").Val() > 0
			}
			value := client.Get(t.Context(), key).Val()
			return packedNumbers([]byte(value[1:]))[0] > 0
		}
		if blockedBy(t, limiter, limit.WithCost(6)); !holds() {
			t.Errorf("%s: the key holds no block", name)
		}
		for {
			d, err := limiter.Take(t.Context(), limit)
			if err == nil {
				break
			}
			if !d.Blocked || d.RetryAfter > rule.Block {
				t.Fatalf("%s: got %+v, %v", name, d, err)
			}
			time.Sleep(d.RetryAfter)
		}
		if holds() {
			t.Errorf("%s: the key still holds the block", name)
		}
	}
}

// TestEndedBlockExpires gives back all that was charged before a block that is over,
// and wants what stays of the key to expire.
func TestEndedBlockExpires(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range blockingRules(time.Hour, 10) {
		rule.Block = time.Millisecond
		call := func(do func(context.Context, []rawstore.Call) error) rawstore.Call {
			calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(name), Max: 10, Cost: 10}}}}
			if err := do(t.Context(), calls); err != nil || calls[0].Err != nil {
				t.Fatal(name, err, calls[0].Err)
			}
			return calls[0]
		}
		charged := call(rawstore.On(store).Take)
		if denied := call(rawstore.On(store).Take); !denied.Charges[0].Blocked {
			t.Fatalf("%s: got %+v, want it blocked", name, denied)
		}
		for call(rawstore.On(store).Peek).Charges[0].Blocked {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Millisecond) // it is over for longer than the unit of PTTL
		ok(t, rawstore.On(store).Settle(t.Context(), charged.Charges))
		if ttl := client.PTTL(t.Context(), name).Val(); ttl == -1 {
			t.Errorf("%s: %q lives for ever", name, client.Dump(t.Context(), name).Val())
		}
	}
}
