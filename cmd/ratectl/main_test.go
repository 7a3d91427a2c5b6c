package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// asCommand is a variable by which the program with the tests is ratectl itself.
const asCommand = "RATECTL_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	if nodes := os.Getenv(asService); nodes != "" {
		serve(nodes)
	}
	limittest.Main(m)
}

// listing is what rategen list -json prints of some rules.
const listing = `{"file":"a.go","line":1,"interface":"Accounts","methods":["LogIn"],"key":["#user"],"window":"15m0s","max":"5","algorithm":"sliding-log","storage":"zset","prefix":"rate_limit:login:","name":"login.user","block":"1h0m0s","mode":"enforce"}
{"file":"a.go","line":2,"interface":"Model","key":["#tenant","#user"],"window":"1m0s","max":"10","algorithm":"token-bucket","burst":20,"prefix":"rate_limit:model:","name":"model.tokens","mode":"enforce"}
{"file":"a.go","line":3,"interface":"Model","key":[],"window":"1m0s","max":"3","algorithm":"sliding-counter","buckets":"6x10","prefix":"rate_limit:all:","name":"model.all","mode":"shadow"}
{"file":"a.go","line":4,"interface":"Reports","key":["#id"],"window":"1h0m0s","max":"#plan.PerHour","algorithm":"sliding-log","storage":"packed","prefix":"rate_limit:reports:","name":"reports","mode":"enforce"}
{"file":"a.go","line":5,"interface":"Jobs","key":["#tenant"],"window":"1h0m0s","max":"3","algorithm":"concurrency","prefix":"rate_limit:jobs:","name":"jobs","mode":"enforce"}
{"file":"b.go","line":1,"interface":"Twin","key":[],"window":"1m0s","max":"1","algorithm":"sliding-log","prefix":"rate_limit:twin1:","name":"twin","mode":"enforce"}
{"file":"b.go","line":2,"interface":"Twin","key":[],"window":"1m0s","max":"1","algorithm":"sliding-log","prefix":"rate_limit:twin2:","name":"twin","mode":"enforce"}
`

// A bench is a Redis with some callers, and the command beside it.
type bench struct {
	env      map[string]string
	client   redis.UniversalClient
	limiter  *runtime.Limiter
	rules    map[string]*runtime.Rule
	terminal bool
	in       string
}

// newBench has limiters as programs have them: with rules of their own, in the
// namespace orders, that follow the hash orders:limits.
func newBench(t *testing.T, client redis.UniversalClient, addr string) *bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.jsonl")
	if err := os.WriteFile(file, []byte(listing), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{client: client, rules: map[string]*runtime.Rule{
		"login":   {Name: "login.user", Prefix: "rate_limit:login:", Window: 15 * time.Minute, Max: 5, Block: time.Hour},
		"model":   {Name: "model.tokens", Prefix: "rate_limit:model:", Window: time.Minute, Max: 10, Algorithm: runtime.TokenBucket, Burst: 20},
		"all":     {Name: "model.all", Prefix: "rate_limit:all:", Window: time.Minute, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Mode: runtime.ModeShadow},
		"reports": {Name: "reports", Prefix: "rate_limit:reports:", Window: time.Hour, Storage: runtime.StoragePacked},
		"jobs":    {Name: "jobs", Prefix: "rate_limit:jobs:", Window: time.Hour, Max: 3, Algorithm: runtime.Concurrency},
	}}
	b.env = map[string]string{"RATECTL_REDIS": addr, "RATECTL_RULES": file, "RATECTL_NAMESPACE": "orders", "RATECTL_OVERRIDES": "orders:limits", "USER": "ada"}
	b.limiter = runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
		runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { b.limiter.Close() }) // it renews permits
	return b
}

// take makes calls of a rule.
func (b *bench) take(t *testing.T, n int, rule string, max int64, parts ...string) {
	t.Helper()
	key := runtime.NewKey()
	for _, part := range parts {
		key.AddString(part)
	}
	limit := b.rules[rule].Limit(key)
	if max > 0 {
		limit = limit.WithMax(max)
	}
	for range n {
		if _, err := b.limiter.Take(context.Background(), limit); err != nil && !strings.Contains(err.Error(), "rate limit exceeded") {
			t.Fatal(err)
		}
	}
}

// An answer is what the command says.
type answer struct {
	code     int
	out, err string
}

func (b *bench) run(args ...string) answer {
	var out, errs bytes.Buffer
	p := &program{in: strings.NewReader(b.in), out: &out, err: &errs, getenv: func(name string) string { return b.env[name] }, asks: b.terminal, shows: b.terminal}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // guards against a hang
	defer cancel()
	code := p.run(ctx, args)
	return answer{code, out.String(), errs.String()}
}

// is reports whether an answer has a code, and its outputs match.
func (a answer) is(code int, out, errs string) bool {
	return a.code == code && regexp.MustCompile(`(?s)^`+out+`$`).MatchString(a.out) && regexp.MustCompile(`(?s)^`+errs+`$`).MatchString(a.err)
}

// wants fails the test unless an answer has a code, and its outputs match.
func (a answer) wants(t *testing.T, code int, out, errs string) {
	t.Helper()
	if !a.is(code, out, errs) {
		t.Errorf("exit code %d, want %d\nstandard output %q\nwant            %q\nstandard error %q\nwant           %q", a.code, code, a.out, out, a.err, errs)
	}
}

// TestCommand goes through an operator's day.
func TestCommand(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	story(t, newBench(t, server.Client(t), server.Addr))
}

// TestCluster has a cluster for what is to be done on one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	// Each is told one node, and finds out that this is a cluster.
	t.Run("command", func(t *testing.T) { story(t, newBench(t, cluster.Client(t), cluster.Nodes[1].Addr)) })
	t.Run("find", func(t *testing.T) { testFind(t, newBench(t, cluster.Client(t), cluster.Nodes[2].Addr)) })
	t.Run("doctor", func(t *testing.T) { testDoctorOfCluster(t, newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)) })
	t.Run("scans", func(t *testing.T) { testScansOfWalk(t, newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)) })
}

func story(t *testing.T, b *bench) {
	ctx := context.Background()
	for i := range 40 {
		b.take(t, i%8, "login", 0, fmt.Sprint("user-", i))
	}
	b.take(t, 20, "model", 0, "acme", "::1")
	b.take(t, 17, "model", 0, "acme", "a b")
	b.run("keys", "model.tokens").wants(t, 0, `KEY.*\nacme:%3A%3A1 +(refused +20/20|near +19/20) .*\nacme:a b +near +1\d/20 +- .*`, "") // before they drain
	b.take(t, 5, "all", 0)
	b.take(t, 7, "reports", 50, "x")
	b.take(t, 2, "jobs", 0, "acme")
	before := b.dump(t)

	a := b.run("top", "-o", "json")
	a.wants(t, 0, `\{"rule":"login.user","keys":35,"blocked":10,"refused":5,"near":5,"unknown":0,"worst_key":"user-\d+"\}\n.*\{"rule":"model.all","keys":1,"blocked":0,"refused":1,.*`, "")
	if n := strings.Count(a.out, "\n"); n != 7 {
		t.Errorf("top prints %d lines", n)
	}
	b.run("keys", "login.user", "-state", "blocked", "-limit", "2").wants(t, 0,
		`KEY +STATE +USED +RETRY +RESET\nuser-14 +blocked +5/5 +\S+ +\S+\nuser-15 +blocked +5/5.*`, "ratectl: these are the first 2 of 10 keys, see -limit and -state\n")
	b.run("keys", "model.all").wants(t, 0, `KEY.*\n"" +refused \(shadow\) +3/3 .*`, "")
	b.run("inspect", "login.user", "user-7").wants(t, 0,
		`rule +login.user, a.go:1\ncounts as +sliding-log over 15m\nkey +user-7\nstate +blocked, by the rule itself: ratectl reset ends that\nlimit +5, 0 left\nused +5\nretry after +(59m|1h).*redis key +orders:rate_limit:login:user-7%block\nredis +\d+ bytes, gone in \S+\n`, "")
	b.run("inspect", "login.user", "orders:rate_limit:login:user-7%block", "-o", "json").wants(t, 0, `\{"rule":"login.user","key":"user-7","state":"blocked","shadow":false,"limit":5,"used":5,"remaining":0,.*"exists":true,.*\}\n`, "")
	b.run("inspect", "-parts", "model.tokens", "acme", "::1").wants(t, 0, `.*key +acme:%3A%3A1\n.*`, "")
	b.run("inspect", "reports", "x").wants(t, 0, `.*limit +each call brings its own, #plan.PerHour: say which with -max\nused +7\n.*`, "")
	b.run("inspect", "reports", "x", "-max", "8").wants(t, 0, `.*state +near\nlimit +8, 1 left\n.*`, "")
	b.run("inspect", "jobs", "acme").wants(t, 0, `.*state +ok\nlimit +3, 1 left\nused +2\n.*`, "")
	b.run("inspect", "login.user", "nobody").wants(t, 3, `.*state +ok\n.*redis +nothing is kept for it in the namespace "orders"\n`, "ratectl: nobody knows this key: .*")
	for key, was := range before {
		if now := b.dump(t)[key]; now != was && !strings.Contains(key, "model:") { // a bucket is written anew
			t.Errorf("reading has changed %s", key)
		}
	}

	b.run("reset", "login.user", "user-7").wants(t, 4, "", `ratectl: nothing is changed: there is no terminal to ask on; say -yes to forget all that is counted for user-7 of rule login.user \(blocked, 5 used\)\n`)
	b.terminal, b.in = true, "no\n"
	b.run("reset", "login.user", "user-7").wants(t, 4, "", `.*Forget all .*\? \[y/N\] ratectl: nothing is changed\n`)
	b.in = "y\n"
	b.run("reset", "login.user", "user-7", "-m", "ticket 7").wants(t, 0, "user-7 of rule login.user is reset; it was blocked, with 5 used\n", `Forget .*\? \[y/N\] `)
	b.terminal, b.in = false, ""
	b.run("reset", "-yes", "login.user", "user-7").wants(t, 3, "", `ratectl: nothing is counted for user-7 of rule login.user in the namespace "orders".*`)
	b.take(t, 1, "login", 0, "user-7")
	b.run("inspect", "login.user", "user-7").wants(t, 0, `.*limit +5, 4 left\n.*`, "")

	b.run("block", "login.user", "user-1", "-for", "1h").wants(t, 0, `user-1 of rule login.user: the override is \{"block":true,"until":"[^"]+Z"\}; there was none; to undo: ratectl undo 2\nno process reports .*\n`, "")
	b.run("allow", "login.user", "user-14").wants(t, 0, `user-14 .* is \{"allow":true\}; there was none; .*`, "")
	b.run("shadow", "on", "login.user").wants(t, 4, "", `.*say -yes to refuse no call of rule login.user\n`)
	b.run("shadow", "on", "login.user", "-yes").wants(t, 0, `rule login.user: .*\{"mode":"shadow"\}; there was none; .*`, "")
	b.run("override", "set", "login.user", "-max", "7", "-o", "json").wants(t, 0,
		`\{"before":\{"rule":"login.user","pattern":null,"mode":"shadow","says":\{"mode":"shadow"\}\},"after":\{"rule":"login.user","pattern":null,"max":7,"mode":"shadow","says":\{"max":7,"mode":"shadow"\}\},"id":5,"processes":\{"report":0,"follow":0\}\}\n`, "")
	b.run("override", "set", "login.user", "-keys", "vip-*", "-max", "100", "-window", "1h").wants(t, 0, `vip-\* of .*; there was none; .*`, "")
	b.run("override", "ls").wants(t, 0, `RULE +KEYS +OVERRIDE +UNTIL\nlogin.user +- +\{"max":7,"mode":"shadow"\} +-\nlogin.user +user-1 .*Z\nlogin.user +user-14 +\{"allow":true\} +-\nlogin.user +vip-\* +\{"max":100,"window":"1h0m0s"\} +-\nno process reports .*\n`, "")
	b.run("rules").wants(t, 0, `RULE.*\nlogin.user +7 per 15m +shadow +sliding-log +\{"max":7,"mode":"shadow"\} +3 +a.go:1\n.*reports +#plan.PerHour per 1h .*`, "")
	b.run("inspect", "login.user", "user-1").wants(t, 0, `.*state +blocked, by an override: ratectl unblock or undo ends that\nlimit +0, 0 left\n.*retry after +never\n.*override +\{"max":7,"mode":"shadow"\} for the rule, by ada at \S+Z\noverride +.*for user-1, by ada at \S+Z\n`, "")
	b.run("inspect", "login.user", "vip-1").wants(t, 0, `.*state +ok, but the rule is in shadow mode and refuses nobody\nlimit +100, 100 left\n.*`, "")
	b.run("inspect", "login.user", "user-14").wants(t, 0, `.*state +off\nlimit +the limit is removed\n.*`, "")
	b.follows(t, map[string]bool{"user-1": false, "user-14": true, "user-23": true}) // 23: only the shadow
	b.run("override", "set", "login.user", "-max", "8", "-for", "1h").wants(t, 0, `.*is \{"max":8,"max_then":7,"max_until":"[^"]+Z","mode":"shadow"\}; it was .*`, "")
	b.run("undo", "-m", "a slip").wants(t, 0, `rule login.user: the override is \{"max":7,"mode":"shadow"\} again; 7, by ada, had made it .*`, "")
	b.run("override", "set", "*", "-enabled", "false").wants(t, 4, "", `.*say -yes to remove all limits.*`)
	b.run("override", "set", "*", "-enabled", "false", "-yes").wants(t, 0, `all limits: the override is \{"enabled":false\}; there was none; .*`, "")
	b.run("keys", "login.user", "-limit", "1").wants(t, 0, `KEY.*\n\S+ +off +- .*`, "ratectl: these .*")
	b.run("override", "rm", "*").wants(t, 0, ".* is gone; .*", "")
	b.run("shadow", "off", "login.user").wants(t, 0, `.*\{"max":7,"mode":"enforce"\}.*`, "")
	b.follows(t, map[string]bool{"user-1": false, "user-14": true, "user-23": false})
	b.run("unblock", "login.user", "user-1").wants(t, 0, `user-1 of rule login.user: the override is gone; it was \{"block":true,.*`, "")
	b.run("unblock", "login.user", "user-1").wants(t, 3, "", `.*has no block in "orders:limits", and no override; if the rule itself.*`)
	b.run("unblock", "login.user", "user-14").wants(t, 3, "", `.*has no block in "orders:limits": its override is \{"allow":true\}.*`)
	b.run("override", "rm", "login.user", "-keys", "vip-*").wants(t, 0, ".*is gone; .*", "")
	b.run("override", "rm", "login.user").wants(t, 0, "rule login.user: the override is gone; .*", "")
	b.run("override", "rm", "login.user").wants(t, 3, "", "ratectl: rule login.user has no override in .*")
	b.run("override", "set", "login.user", "-max", "1000001").wants(t, 1, "", ".*the maximum of a sliding-log.*")
	if left := b.client.HGetAll(ctx, "orders:limits").Val(); len(left) != 1 { // of user-14
		t.Errorf("overrides that are left: %v", left)
	}
	b.run("history", "-limit", "8").wants(t, 0, `CHANGE +AT .*\n14 .* ada +rule login.user +\{"max":7,"mode":"enforce"\} +- +-\n.*\n8 .* rule login.user .* undo 7: a slip\n7 .*`, "ratectl: these are the last 8 of 14 changes, see -limit\n")

	for i := range 3 {
		b.client.Set(ctx, fmt.Sprint("orders:rate_limit:login:lost-", i, "%block"), "x", 0)
		b.client.Set(ctx, fmt.Sprint("other:", i), "x", 0)
	}
	b.run("keys", "login.user", "-state", "broken").wants(t, 0, `KEY.*\nlost-0 +broken +- +- +-\n.*`, "")
	b.client.Set(ctx, "orders:rate_limit:login:lost-9%block", "x", 0)
	b.run("reset", "login.user", "lost-9", "-yes").wants(t, 0, "lost-9 of rule login.user is reset; it was broken, with 0 used\n", "")
	b.run("memory", "-o", "json", "other:", "other:1").wants(t, 0, `\{"prefix":"other:","keys":2,"bytes":\d+,"endless":2,"healed":0\}\n\{"prefix":"other:1","keys":1,"bytes":\d+,"endless":1,"healed":0\}\n`, "")
	b.run("memory").wants(t, 0, `KEYS.*\n3[89] +\d+ +3 +0 +login.user\n.*`, "")
	b.run("fix-expiry").wants(t, 4, "", ".*say -yes to give 3 keys an expiry\n")
	b.run("fix-expiry", "other:").wants(t, 2, "", ".*-expiry 48h.*")
	b.run("fix-expiry", "-yes").wants(t, 0, `KEYS.*\n3[89] +\d+ +3 +3 +login.user\n.*`, "")
	if left := b.client.TTL(ctx, "orders:rate_limit:login:lost-1%block").Val(); left < time.Hour || left > 3*time.Hour {
		t.Errorf("a healed key lives on for %v", left)
	}
	if left := b.client.TTL(ctx, "other:1").Val(); left != -1 {
		t.Errorf("a key of somebody else's lives on for %v", left)
	}
	b.run("fix-expiry", "other:", "-expiry", "48h", "-yes").wants(t, 0, `KEYS.*\n3 +\d+ +3 +3 +other:\n`, "")
	b.in = b.run("export", "model.tokens").out
	b.run("import", "-yes", "-").wants(t, 0, `RULE.*model.tokens +0 +2 +0 +0\n`, "")
	b.run("import", "-yes", "-overwrite", "-", "-m", "a slip").wants(t, 0, `RULE.*model.tokens +2 +0 +0 +0\n`, "")

	// What was done to counts is in the history as well, and says so to who would undo it.
	b.run("history").wants(t, 0, `CHANGE.*
19 .* ada +all limits +- +import -overwrite of 2 keys of model.tokens +a slip
18 .* ada +all limits +- +import of 2 keys of model.tokens +-
17 .* ada +all limits +"3 keys without an expiry other:" +fix-expiry +-
16 .* ada +all limits +"3 keys without an expiry" +fix-expiry +-
15 .* ada +lost-9 of rule login.user +"broken, 0 used" +reset +-
14 .*
1 .* ada +user-7 of rule login.user +"blocked, 5 used" +reset +ticket 7
`, "")
	b.run("undo").wants(t, 1, "", `ratectl: undo 19: it was "import -overwrite .*", which cannot be undone: the counts of before are not kept; name .*`)
	b.run("history", "-o", "json", "-limit", "5").wants(t, 0, `.*"before":"broken, 0 used","after":null,"did":"reset"\}\n`, ".*these are the last 5 of 19.*")
	b.env["RATECTL_OVERRIDES"] = ""
	b.run("fix-expiry", "other:", "-expiry", "48h", "-yes", "-m", "x").wants(t, 0, `KEYS.*`, "") // there is none to give
	b.client.Persist(ctx, "other:1")
	b.run("fix-expiry", "other:", "-expiry", "48h", "-yes", "-m", "x").wants(t, 2, "", `ratectl: -m is for the history.*`)
	b.run("fix-expiry", "other:", "-expiry", "48h", "-yes").wants(t, 0, `KEYS.*`, `ratectl: the history does not have this: .*\n`)
}

// dump returns all keys and what they hold.
func (b *bench) dump(t *testing.T) map[string]string {
	var mu sync.Mutex // masters are asked at the same time
	all := make(map[string]string)
	o := &operate.Core{Client: b.client}
	err := o.Masters(context.Background(), func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, "orders:*").Result()
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			all[key] = c.Dump(ctx, key).Val()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// follows wants a program that follows the hash to admit callers of login.user, or
// not.
func (b *bench) follows(t *testing.T, want map[string]bool) {
	t.Helper()
	told := make(chan error, 10)
	limiter := runtime.New(runtime.NewRedisStore(b.client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
		runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(override.Redis(b.client, "orders:limits"), time.Minute),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) { told <- ev.Err }}))
	defer limiter.Close()
	select {
	case err := <-told:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute): // an empty hash is no news
		t.Fatal("no overrides are in force")
	}
	for user, admits := range want {
		d, err := limiter.Peek(context.Background(), b.rules["login"].Limit(runtime.NewKey().AddString(user)))
		if err != nil || d.Allowed != admits {
			t.Errorf("%s: admitted %t, %v, want %t", user, d.Allowed, err, admits)
		}
	}
}

// Every line of -o json is JSON, whatever bytes a key has.
func TestJSON(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	for _, user := range []string{"\x1b[2J", "\xff", "键", `"`, "a\nb", "*"} {
		b.take(t, 5, "login", 0, user)
	}
	b.take(t, 1, "login", 0, strings.Repeat("long", 100))
	a := b.run("keys", "login.user", "-o", "json")
	lines := strings.Split(strings.TrimSuffix(a.out, "\n"), "\n")
	if len(lines) != 7 || a.code != 0 {
		t.Fatalf("%d keys, %s", len(lines), a.err)
	}
	for _, line := range lines {
		var s struct{ Key string }
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		// What is shown can be typed.
		b.run("inspect", "login.user", s.Key).wants(t, 0, `.*redis +\d+ bytes.*`, "")
	}
	if a := b.run("keys", "login.user"); strings.Contains(a.out, "\x1b") || strings.Contains(a.out, "\xff") {
		t.Errorf("a key moves the cursor: %q", a.out)
	}
}
