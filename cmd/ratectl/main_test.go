package main

import (
	"bytes"
	"context"
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
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
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
	dir      string // has rules.jsonl
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
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.jsonl")
	limittest.OK(t, os.WriteFile(file, []byte(listing), 0o600))
	b := &bench{dir: dir, client: client}
	b.readRules(t)
	b.env = map[string]string{"RATECTL_REDIS": addr, "RATECTL_RULES": file, "RATECTL_NAMESPACE": "orders", "RATECTL_OVERRIDES": "orders:limits", "USER": "ada"}
	b.limiter = runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
		runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limiter := b.limiter
	t.Cleanup(func() { limiter.Close() }) // it renews permits
	return b
}

// readRules has calls be of the rules that are listed now.
func (b *bench) readRules(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "rules.jsonl"))
	limittest.OK(t, err)
	listed, _ := parseListing(bytes.NewReader(text)) // which a command complains of
	b.rules = map[string]*runtime.Rule{}
	for _, d := range listed {
		if d.Shadow {
			d.Rule.Mode = runtime.ModeShadow
		}
		b.rules[d.Name] = d.Rule
	}
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
	b.call(t, n, limit)
}

func (b *bench) call(t *testing.T, n int, limit runtime.Limit) {
	t.Helper()
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

// TestCluster has a cluster for what is to be done on one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	// Each is told one node, and finds out that this is a cluster.
	for i, name := range []string{"day", "find"} {
		at := cluster.Nodes[i+1].Addr
		t.Run(name, func(t *testing.T) {
			document.Transcript(t, "testdata/"+name+".txt", play(t, newBench(t, cluster.Client(t), at), at))
		})
	}
	t.Run("doctor", func(t *testing.T) { testDoctorOfCluster(t, newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)) })
	t.Run("scans", func(t *testing.T) { testScansOfWalk(t, newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)) })
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
			if strings.Contains(key, "%check:") {
				continue // it is gone in a moment
			}
			all[key] = c.Dump(ctx, key).Val()
		}
		return err
	})
	limittest.OK(t, err)
	return all
}

// follows tells whom a program that follows the hash admits to login.user.
func (b *bench) follows(t *testing.T, users []string) (said string) {
	t.Helper()
	told := make(chan error, 10)
	limiter := runtime.New(runtime.NewRedisStore(b.client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
		runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(override.Redis(b.client, "orders:limits"), time.Minute),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) { told <- ev.Err }}))
	defer limiter.Close()
	select {
	case err := <-told:
		limittest.OK(t, err)
	case <-time.After(time.Minute): // an empty hash is no news
		t.Fatal("no overrides are in force")
	}
	for _, user := range users {
		d, err := limiter.Peek(context.Background(), b.rules["login.user"].Limit(runtime.NewKey().AddString(user)))
		limittest.OK(t, err)
		said += map[bool]string{true: user + " is admitted\n", false: user + " is refused\n"}[d.Allowed]
	}
	return said
}
