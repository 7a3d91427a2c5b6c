package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A caller is found by name alone: the rules, what is left of each, and which overrides decide.
func TestFind(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	testFind(t, newBench(t, server.Client(t), server.Addr))
}

func testFind(t *testing.T, b *bench) {
	b.run("find", "zeta").wants(t, 3, "", `ratectl: nothing is counted for a key with "zeta" in the namespace "orders", and no override .*\n`)
	b.take(t, 7, "login", 0, "zeta")
	b.take(t, 1, "login", 0, "zeta.example") // who only sounds alike
	b.take(t, 20, "model", 0, "zeta", "::1")
	b.take(t, 3, "model", 0, "other", "zeta")
	b.take(t, 3, "model", 0, "other", "ann")
	b.take(t, 5, "all", 0)
	b.run("find", "zeta").wants(t, 0, `RULE +KEY +STATE +USED +RETRY +RESET +REFUSED +OVERRIDES
login.user +zeta +blocked +5/5 +\S+ +\S+ +- +-
model.tokens +zeta:%3A%3A1 +(refused +20/20|near +19/20) .* -
model.tokens +other:zeta +ok +\d/20 +.* -
login.user +zeta.example +ok +1/5 .* -
`, "")
	b.run("override", "set", "login.user", "-keys", "zeta*", "-max", "9", "-for", "2h").wants(t, 0, ".*", "")
	b.run("override", "set", "model.tokens", "-max", "50").wants(t, 0, ".*", "")
	b.run("override", "set", "model.tokens", "-keys", "zeta:*", "-max", "60").wants(t, 0, ".*", "")
	b.run("override", "set", "model.tokens", "-keys", "beta:zeta*", "-max", "60").wants(t, 0, ".*", "")
	b.run("block", "jobs", "zeta").wants(t, 0, ".*", "") // nothing is counted there
	b.run("find", "zeta").wants(t, 0, `RULE .*
login.user +zeta +blocked +9/9 .* - +\{"max":9,"until":"\S+Z"\} for zeta\*, by ada at \S+Z
jobs +zeta +blocked +0/0 +never +0s +- +\{"block":true\} for zeta, by ada at \S+Z
model.tokens +zeta:%3A%3A1 +(refused|near) .* \{"max":50\} for the rule, by ada at \S+Z; \{"max":60\} for zeta:\*, by .*
model.tokens +other:zeta +ok .* \{"max":50\} for the rule, by .*
login.user +zeta.example +ok +1/9 .* \{"max":9,"until":"\S+Z"\} for zeta\*, by ada at \S+Z
`, `ratectl: an override that decides for none of these keys: \{"max":60\} for beta:zeta\*, of rule model.tokens\n`)
	b.run("find", "zeta", "-limit", "1", "-o", "json").wants(t, 0, `\{"rule":"login.user","key":"zeta","state":"blocked",.*"overrides":\[\{"rule":"login.user","pattern":"zeta\*","max":9,.*\}\]\}\n`, `ratectl: these are the worst 1 of 5 keys, see -limit\nratectl: an override that decides for none of these keys: .*`)
	b.run("find", "zeta:%3A%3A1").wants(t, 0, `RULE.*\nmodel.tokens +zeta:%3A%3A1 .*`, "") // as it is shown
	b.run("find", "::1").wants(t, 0, `RULE.*\nmodel.tokens +zeta:%3A%3A1 .*`, "")
	b.run("find", "").wants(t, 2, "", ".*Name a caller.*")
	b.run("find", "log").wants(t, 3, "", ".*nothing is counted.*") // which is in a prefix

	b.take(t, 6, "login", 0, "2001:db8:0:1200::") // as a /56 is written
	b.run("find", "2001:db8:0:12ab::7").wants(t, 0, `RULE.*\nlogin.user +2001%3Adb8%3A0%3A1200%3A%3A +blocked .*`, "")
}

// Of more keys than are shown, and than are judged, those that refuse the caller come first, whatever
// their rules are called.
func TestFindRanks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	b := newBench(t, client, server.Addr)
	var rules strings.Builder
	const many = 420
	take := func(i, n int, user string) {
		rule := &runtime.Rule{Name: fmt.Sprintf("r%03d", i), Prefix: fmt.Sprintf("rate_limit:r%03d:", i), Window: time.Hour, Max: 2, Algorithm: runtime.FixedWindow}
		for range n {
			_, _ = b.limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString(user)))
		}
	}
	for i := range many {
		fmt.Fprintf(&rules, `{"file":"a.go","line":%d,"interface":"S","key":["#user"],"window":"1h0m0s","max":"2","algorithm":"fixed-window","prefix":"rate_limit:r%03[1]d:","name":"r%03[1]d","mode":"enforce"}`+"\n", i)
		take(i, 1, "acme")
	}
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{401, 417} {
		take(i, 3, "acme")
	}
	b.run("override", "set", "r410", "-keys", "acme", "-max", "1").wants(t, 0, ".*", "")
	a := b.run("find", "acme", "-limit", "4")
	a.wants(t, 0, `RULE.*\nr401 +acme +refused +2/2 .*\nr417 +acme +refused +2/2 .*\nr410 +acme +refused +1/1 .*\nr000 +acme +ok +1/2 .*`, `ratectl: these are the worst 4 of 420 keys, see -limit\n`)

	name := b.redisKey("r007", "acme")
	value := client.Dump(t.Context(), name).Val()
	if _, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 6000 {
			pipe.RestoreReplace(t.Context(), strings.Replace(name, "r007:acme", fmt.Sprintf("r%03d:acme-%d", i%many, i), 1), time.Hour, value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	take(419, 3, "acme-last")
	b.tellRefused(t, client.Time(t.Context()).Val().Unix(), 2, "r419\tacme-last\t1")
	b.run("find", "acme-", "-limit", "1").wants(t, 0, `RULE.*\nr419 +acme-last +refused +2/2 .* 1, last .*`,
		`ratectl: of 6001 keys 5000 were judged, those first that were refused in the last day: name more of the caller\nratectl: these are the worst 1 of 6001 keys, see -limit\n`)
}

// redisKey returns the key of a caller of a rule with fixed windows. Others in Redis begin alike, by which a store finds
// out whether a proxy shards it.
func (b *bench) redisKey(rule, user string) string {
	r := &runtime.Rule{Name: rule, Prefix: "rate_limit:" + rule + ":", Window: time.Hour, Max: 2, Algorithm: runtime.FixedWindow}
	return bridge.LimiterOf(b.limiter).RedisKey(r.Limit(runtime.NewKey().AddString(user)))
}

// TestUnknown has callers whose max comes with each call: nobody knows that of the next one, but what
// refused the last one is known.
func TestUnknown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 9, "reports", 5, "refused")
	b.take(t, 5, "reports", 50, "free")
	b.tellRefused(t, b.client.Time(t.Context()).Val().Unix(), 2, "reports\trefused\t5\t4", "reports\tfree\t3\t9")
	b.run("keys", "reports").wants(t, 0, `KEY.*\nrefused +refused +5/5 +\S+ .*\nfree +refused +3/3 .*`, "")
	b.client.Del(t.Context(), "orders:rate_limit:{processes}:refused")
	b.tellRefused(t, b.client.Time(t.Context()).Val().Unix(), 2, "reports\trefused\t5\t4", "reports\tfree\t30\t9")
	b.run("keys", "reports").wants(t, 0, `KEY.*\nrefused +refused +5/5 +\S+ .*\nfree +unknown +5 .*`, "")
	b.run("top", "-count", "1").wants(t, 0, `RULE +BLOCKED +REFUSED +NEAR +UNKNOWN .*\nreports +0 +1 +0 +1 +2 +refused\n.*`, "")
	b.run("find", "free").wants(t, 0, `RULE.*\nreports +free +unknown +5 .* 9, last .*`, "")
	b.run("find", "refused").wants(t, 0, `RULE.*\nreports +refused +refused +5/5 .*`, "")
	b.run("inspect", "reports", "free").wants(t, 0, `.*state +unknown: each call brings its max\nlimit +each call brings its own.*`, "")
	b.run("inspect", "reports", "refused").wants(t, 0, `.*state +refused\nlimit +5, 0 left, by the max of the last refusal\n.*`, "")
	b.run("inspect", "reports", "free", "-max", "50").wants(t, 0, `.*state +ok\nlimit +50, 45 left\n.*`, "")
	b.run("override", "set", "reports", "-max", "60").wants(t, 0, ".*", "") // then calls bring none
	b.run("keys", "reports").wants(t, 0, `KEY.*\nfree +ok +5/60 +.*\nrefused +ok +5/60 .*`, "")
}

// Of 200 rules and 20,000 keys a caller is found in less than a second.
func TestFindAmongMany(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	b := newBench(t, client, server.Addr)
	var rules strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rules, `{"file":"a.go","line":%d,"interface":"S","key":["#user"],"window":"1h0m0s","max":"5","algorithm":"fixed-window","prefix":"rate_limit:r%d:","name":"r%d","mode":"enforce"}`+"\n", i, i, i)
	}
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		rule := &runtime.Rule{Name: fmt.Sprint("r", i), Prefix: fmt.Sprintf("rate_limit:r%d:", i), Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
		for _, user := range []string{"acme", "other"} {
			if _, err := b.limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString(user))); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := b.redisKey("r7", "other")
	value := client.Dump(t.Context(), name).Val()
	if _, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 20_000 {
			pipe.RestoreReplace(t.Context(), strings.Replace(name, "r7:other", fmt.Sprintf("r%d:user-%d", i%200, i), 1), time.Hour, value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	commands := func() (n int64) {
		_, after, _ := strings.Cut(client.Info(t.Context(), "stats").Val(), "total_commands_processed:")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	before := commands()
	a := b.run("find", "acme", "-limit", "1000")
	made := commands() - before
	if lines := strings.Count(a.out, "\n"); a.code != 0 || lines != 201 {
		t.Errorf("exit code %d, %d lines\n%s%s", a.code, lines, a.out, a.err)
	}
	if made > 1000 {
		t.Errorf("%d commands for 200 keys of 20,400: one for each key is too slow", made)
	}
}
