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
