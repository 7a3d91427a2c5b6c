package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// more lists rules of the algorithms and storages that the listing of all tests lacks.
const more = `{"file":"c.go","line":1,"interface":"More","key":["#id"],"window":"month","tz":"Europe/Berlin","anchor":"31","max":"1000000","algorithm":"fixed-window","prefix":"rate_limit:month:","name":"month","mode":"enforce"}
{"file":"c.go","line":2,"interface":"More","key":["#id"],"window":"24h0m0s","max":"9","algorithm":"fixed-window","prefix":"rate_limit:day:","name":"day","block":"1h0m0s","mode":"enforce"}
{"file":"c.go","line":3,"interface":"More","key":["#id"],"window":"1h0m0s","max":"50","algorithm":"leaky-bucket","burst":20,"prefix":"rate_limit:leaky:","name":"leaky","mode":"enforce"}
{"file":"c.go","line":4,"interface":"More","key":["#id"],"window":"24h0m0s","max":"50","algorithm":"leaky-bucket","burst":20,"wait":"1m0s","prefix":"rate_limit:queue:","name":"queue","mode":"enforce"}
{"file":"c.go","line":5,"interface":"More","key":["#id"],"window":"1h0m0s","max":"50","algorithm":"sliding-counter","buckets":"60","prefix":"rate_limit:counter:","name":"counter","mode":"enforce"}
{"file":"c.go","line":6,"interface":"More","key":["#id"],"window":"1h0m0s","max":"50","algorithm":"sliding-counter","buckets":"auto","prefix":"rate_limit:auto:","name":"auto","mode":"enforce"}
{"file":"c.go","line":7,"interface":"More","key":["#id"],"window":"1h0m0s","max":"100000","algorithm":"sliding-log","storage":"packed","resolution":"1s","prefix":"rate_limit:long:","name":"long","mode":"enforce"}
{"file":"c.go","line":8,"interface":"More","key":["#id"],"window":"1h0m0s","max":"100000","algorithm":"sliding-log","prefix":"rate_limit:big:","name":"big","mode":"enforce"}
{"file":"c.go","line":9,"interface":"More","key":["#id","#user"],"window":"1h0m0s","max":"10","algorithm":"token-bucket","burst":20,"prefix":"rate_limit:tokens:","name":"tokens","mode":"enforce"}
{"file":"c.go","line":10,"interface":"More","key":[],"window":"1h0m0s","max":"3","algorithm":"sliding-counter","buckets":"6x10","prefix":"rate_limit:layered:","name":"layered","mode":"shadow"}
{"file":"c.go","line":11,"interface":"More","key":["#tenant"],"window":"1h0m0s","max":"3","algorithm":"concurrency","prefix":"rate_limit:permits:","name":"permits","mode":"enforce"}
{"file":"c.go","line":12,"interface":"More","key":["#id"],"window":"month","max":"1000","algorithm":"fixed-window","reserve":"1h0m0s","prefix":"rate_limit:reserved:","name":"reserved","mode":"enforce"}
`

// names are callers' names that somebody may have chosen to do harm.
var names = []string{"acme", "a b", "\x1b[2J", "\xff\xfe", "键", `"`, "a\nb", "*", "%41", "{x}", "a:b", `{"keys":0}`, strings.Repeat("long", 100)}

// newCounts has charges of every rule in a Redis.
func newCounts(t *testing.T, b *bench) {
	t.Helper()
	limittest.OK(t, os.WriteFile(b.env["RATECTL_RULES"], []byte(listing+more), 0o600))
	b.readRules(t)
	for _, name := range names {
		for _, r := range []string{"login.user", "leaky", "counter", "auto"} {
			b.take(t, 1+len(name)%7, r, 0, name) // logins block
		}
		b.take(t, 2, "tokens", 0, name, "user")
		b.take(t, 3, "reports", 50, name)
	}
	b.take(t, 5, "layered", 0)
	b.take(t, 2, "permits", 0, "acme")
	b.take(t, 1, "queue", 0, "acme")
	b.take(t, 12, "day", 0, "acme")
	b.take(t, 77, "month", 0, "acme")
	b.take(t, 3, "reserved", 0, "acme") // calls that run
	for _, r := range []string{"big", "long"} {
		limit := b.rules[r].Limit(runtime.NewKey().AddString("acme")).WithCost(250)
		for range 100 { // more than a page
			if _, err := b.limiter.Take(t.Context(), limit); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// found is what callers of all rules find.
func (b *bench) found(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, rule := range []string{"login.user", "tokens", "layered", "reports", "permits", "reserved", "month", "day", "leaky", "queue", "counter", "auto", "long", "big"} {
		a := b.run("keys", rule, "-o", "json", "-limit", "1000")
		if a.code != 0 {
			t.Fatalf("%s: %s", rule, a.err)
		}
		var lines []string
		for line := range strings.Lines(a.out) {
			var s operate.State
			limittest.OK(t, json.Unmarshal([]byte(line), &s))
			if s.Remaining != nil && slices.Contains([]string{"tokens", "leaky", "queue"}, s.Rule) { // meanwhile
				s.Used, s.State = 0, "ok"
			}
			lines = append(lines, fmt.Sprintf("%s %q %s used %d limited %v", s.Rule, s.Key, s.State, s.Used, s.RetryMS == nil || *s.RetryMS > 0))
		}
		slices.Sort(lines) // the command sorts by what was used, also of what drains
		all.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return all.String()
}

// lives returns until when each key lives.
func (b *bench) lives(t *testing.T) map[string]time.Time {
	all := map[string]time.Time{}
	for key := range b.dump(t) {
		if strings.Contains(key, "%check:") {
			continue // of a look for a proxy that shards keys
		}
		all[strings.TrimPrefix(key, "orders:")] = time.Now().Add(b.client.PTTL(context.Background(), key).Val())
	}
	return all
}

// Counts of every algorithm and storage, of hostile callers and a million events, move from
// one Redis to another and into a cluster. Callers find there what they found, for as long.
func TestExportImport(t *testing.T) {
	t.Parallel()
	from := redistest.Start(t)
	old := newBench(t, from.Client(t), from.Addr)
	newCounts(t, old)
	old.client.Set(t.Context(), "orders:rate_limit:login:%zz%block", "x", time.Hour) // somebody else's
	old.client.RPush(t.Context(), "orders:rate_limit:login:list%block", "x")
	exported := old.run("export")
	exported.wants(t, 0, `\{"ratectl_export":1,"namespace":"orders"\}\n.*\{"keys":\d+\}\n`, "ratectl: 2 keys are left out.*\n")
	old.client.Del(t.Context(), "orders:rate_limit:login:%zz%block", "orders:rate_limit:login:list%block")
	file := filepath.Join(t.TempDir(), "counts.jsonl")
	limittest.OK(t, os.WriteFile(file, []byte(exported.out), 0o600))
	server := redistest.Start(t)
	targets := map[string]*bench{"server": newBench(t, server.Client(t), server.Addr)}
	if effort.More() {
		cluster := redistest.StartCluster(t)
		targets["cluster"] = newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)
	}
	for name, b := range targets {
		b.env["RATECTL_RULES"] = old.env["RATECTL_RULES"]
		b.run("import", file).wants(t, 4, "", ".*say -yes to import the counts of .*keep those that are there\n")
		b.run("import", "-n", file).wants(t, 0, `RULE.*login.user +13 +0 +0 +0\n.*`, "")
		if n := len(b.lives(t)); n > 0 {
			t.Fatalf("%s: %d keys after a dry run", name, n)
		}
		b.run("import", "-yes", file).wants(t, 0, `RULE +IMPORTED +KEPT +LAPSED +BAD\nlogin.user +13 +0 +0 +0\n.*month +1 +0 +0 +0\n.*big +1 +0 +0 +0\n.*permits +1 +0 +0 +0\nreserved +1 +0 +0 +0\n`, "")
		want, got := old.found(t), b.found(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-old +new):\n%s", name, diff)
		}
		kept, put := old.dump(t), b.dump(t)
		for key := range kept {
			if put[key] != kept[key] && !strings.Contains(key, "%check:") {
				t.Errorf("%s: %q holds something else", name, key)
			}
		}
		before, after := old.lives(t), b.lives(t)
		for key, until := range before {
			if apart := after[key].Sub(until); apart < -100*time.Millisecond || apart > time.Second {
				t.Errorf("%s: %q lives %v longer", name, key, apart)
			}
		}
		if len(before) != len(after) {
			t.Errorf("%s: %d keys of %d", name, len(after), len(before))
		}
		// Again nothing is changed, and what was counted since stays, unless it is said so.
		b.rules = old.rules
		b.take(t, 3, "month", 0, "acme")
		b.run("import", "-yes", file).wants(t, 0, `RULE.*login.user +0 +13 +0 +0\n.*month +0 +1 +0 +0\n.*`, "")
		b.run("inspect", "month", "acme").wants(t, 0, `.*used +80\n.*`, "")
		b.in = exported.out
		b.run("import", "-yes", "-overwrite", "-").wants(t, 0, `RULE.*login.user +13 +0 +0 +0\n.*`, "")
		b.in = ""
		b.run("inspect", "month", "acme").wants(t, 0, `.*used +77\n.*`, "")
		if again := b.run("export", "login.user", "big", "day").out; strings.Count(again, "\n") != 17 {
			t.Errorf("%s: %d lines are exported again, want 15 keys and 2", name, strings.Count(again, "\n"))
		}
	}
	// Some rules, into another namespace: keys that are hashes of long ones belong to one.
	server.Client(t).FlushAll(t.Context())
	b := newBench(t, server.Client(t), server.Addr)
	b.env["RATECTL_RULES"], b.env["RATECTL_NAMESPACE"] = old.env["RATECTL_RULES"], "other"
	some := old.run("export", "month", "day")
	some.wants(t, 0, `[^\n]*\n\{"rule":"(month|day)"[^\n]*\n\{"rule":"(month|day)"[^\n]*\n\{"keys":2\}\n`, "")
	b.in = some.out
	b.run("import", "-yes", "-").wants(t, 0, `RULE.*month +1 +0 +0 +0\nday +1 +0 +0 +0\n`, "")
	b.run("inspect", "month", "acme").wants(t, 0, `.*used +77\n.*redis key +other:rate_limit:month:acme%\S+\n.*`, "")
	b.in = exported.out
	b.run("import", "-yes", "-").wants(t, 2, "", `.*line \d+: the key is a hash of one that was too long in the namespace "orders": it is none in the namespace "other".*nothing is imported\n`)
	b.run("export", "mont").wants(t, 2, "", `.*did you mean "month".*`)
}

// While programs count, an import takes away nothing that they have counted.
func TestImportMeanwhile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	newCounts(t, b)
	b.in = b.run("export", "month", "login.user").out
	b.client.FlushAll(t.Context())
	b.take(t, 1, "month", 0, "acme") // newer
	stop, done := make(chan struct{}), make(chan int64)
	go func() {
		n := int64(1)
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
				b.take(t, 1, "month", 0, "acme")
				n++
			}
		}
	}()
	for range 3 {
		b.run("import", "-yes", "-").wants(t, 0, `RULE.*month +0 +1 +0 +0\n`, "")
	}
	close(stop)
	n := <-done
	d, err := b.limiter.Peek(t.Context(), b.rules["month"].Limit(runtime.NewKey().AddString("acme")))
	if err != nil || d.Limit-d.Remaining != n {
		t.Errorf("%d are counted, %v, and %d were made", d.Limit-d.Remaining, err, n)
	}
}
