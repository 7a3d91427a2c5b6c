package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// newMany has so many rules, r000 and so on.
func newMany(t *testing.T, rules int) *bench {
	t.Helper()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	var text strings.Builder
	for i := range rules {
		fmt.Fprintf(&text, `{"file":"a.go","line":%d,"interface":"S","key":["#user"],"window":"1h0m0s","max":"2","algorithm":"fixed-window","prefix":"rate_limit:r%03[1]d:","name":"r%03[1]d","mode":"enforce"}`+"\n", i)
	}
	limittest.OK(t, os.WriteFile(b.env["RATECTL_RULES"], []byte(text.String()), 0o600))
	b.readRules(t)
	return b
}

// copied has so many keys like that of acme of r007, in all rules.
func (b *bench) copied(t *testing.T, n int, prefix string) {
	t.Helper()
	// Others in Redis begin alike, by which a store finds out whether a proxy shards it.
	name := bridge.LimiterOf(b.limiter).RedisKey(b.rules["r007"].Limit(runtime.NewKey().AddString("acme")))
	value := b.client.Dump(t.Context(), name).Val()
	_, err := b.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range n {
			pipe.RestoreReplace(t.Context(), strings.Replace(name, "r007:acme", fmt.Sprintf("r%03d:%s-%d", i%len(b.rules), prefix, i), 1), time.Hour, value)
		}
		return nil
	})
	limittest.OK(t, err)
}

// Of more keys than are shown, and than are judged, those that refuse the caller come first, whatever
// their rules are called.
func TestFindRanks(t *testing.T) {
	t.Parallel()
	b := newMany(t, 420)
	for name := range b.rules {
		b.take(t, 1, name, 0, "acme")
	}
	b.take(t, 2, "r401", 0, "acme")
	b.take(t, 2, "r417", 0, "acme")
	b.run("override", "set", "r410", "-keys", "acme", "-max", "1").wants(t, 0, ".*", "")
	b.run("find", "acme", "-limit", "4").wants(t, 0, `RULE.*\nr401 +acme +refused +2/2 .*\nr417 +acme +refused +2/2 .*\nr410 +acme +refused +1/1 .*\nr000 +acme +ok +1/2 .*`,
		`ratectl: these are the worst 4 of 420 keys, see -limit\n`)
	b.copied(t, 6000, "acme")
	b.take(t, 3, "r419", 0, "acme-last")
	b.tellRefused(t, b.client.Time(t.Context()).Val().Unix(), 2, "r419\tacme-last\t1")
	b.run("find", "acme-", "-limit", "1").wants(t, 0, `RULE.*\nr419 +acme-last +refused +2/2 .* 1, last .*`,
		`ratectl: of 6001 keys 5000 were judged, those first that were refused in the last day: name more of the caller\nratectl: these are the worst 1 of 6001 keys, see -limit\n`)
}

// Of 200 rules and 20,000 keys a caller is found by few commands.
func TestFindAmongMany(t *testing.T) {
	t.Parallel()
	b := newMany(t, 200)
	for name := range b.rules {
		b.take(t, 1, name, 0, "acme")
	}
	b.copied(t, 20_000, "user")
	commands := func() (n int64) {
		_, after, _ := strings.Cut(b.client.Info(t.Context(), "stats").Val(), "total_commands_processed:")
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
		t.Errorf("%d commands for 200 keys of 20,200: one for each key is too slow", made)
	}
}
