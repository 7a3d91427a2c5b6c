package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// serverRules holds a rule for every way of counting, with a prefix of its own
// and without waiting.
func serverRules(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := modelRules()
	for name, rule := range rules {
		rule.Name, rule.Prefix = name, strings.ReplaceAll(name, " ", "_")+":"
		rule.Window, rule.Max, rule.Burst, rule.Wait = window, max, 0, 0
		if name == "queue" {
			delete(rules, name)
		}
	}
	return rules
}

// commands counts what a client sends, by name.
type commands struct {
	mu    sync.Mutex
	names []string
}

func (c *commands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !connects(cmd) {
			c.mu.Lock()
			c.names = append(c.names, cmd.Name())
			c.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !connects(cmds...) {
			c.mu.Lock()
			c.names = append(c.names, "pipeline")
			c.mu.Unlock()
		}
		return next(ctx, cmds)
	}
}

// connects reports whether commands are part of making a connection. On a busy
// machine a store has more made while calls are under way.
func connects(cmds ...redis.Cmder) bool {
	return !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
		return !slices.Contains([]string{"ping", "hello", "client"}, cmd.Name())
	})
}

// sent returns what was sent since the last time, but for what made connections.
func (c *commands) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}

func TestOneTrip(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	var count commands
	client.AddHook(&count)
	client.Ping(ctx) // so that there is a connection
	count.sent()
	limiter := onRedis(client, atOnce)
	var limits []runtime.Limit
	for _, rule := range serverRules(time.Hour, 3) {
		if len(limits) < runtime.MaxLimits {
			limits = append(limits, rule.Limit(key("k")))
		}
	}
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}, {"evalsha"}, {"evalsha"}} {
		_, err := limiter.Take(ctx, limits...)
		if errors.Is(err, runtime.ErrLimited) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
		if diff := cmp.Diff(want, count.sent()); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
	}
	// Calls with one limit each have a script of their own.
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}} {
		limiter.TakeEach(ctx, limits...)
		if diff := cmp.Diff(want, count.sent()); diff != "" {
			t.Errorf("batch %d (-want +got):\n%s", i, diff)
		}
	}
	if _, err := limiter.Peek(ctx, limits...); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"evalsha"}, count.sent()); diff != "" {
		t.Errorf("peek (-want +got):\n%s", diff)
	}
}

// TestScriptFlush forgets the script all the time.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	ctx, cancel := context.WithCancel(context.Background())
	var flushed atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			ok(t, client.ScriptFlush(context.Background()).Err())
			flushed.Add(1)
			time.Sleep(5 * time.Millisecond)
		}
	})
	limiter := onRedis(server.Client(t))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 100}
	keys := int64(0)
	for ; flushed.Load() < 20 || keys < 20; keys++ {
		if got := admittedOf(t, rule.Limit(runtime.NewKey().AddInt(keys)), limiter); got != 100 {
			t.Errorf("key %d: admitted %d, want 100", keys, got)
		}
	}
	cancel()
	wait.Wait()
	t.Logf("%d flushes while %d keys were called on", flushed.Load(), keys)
}

func TestForeignType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	good := &runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 100}
	for name, rule := range serverRules(time.Hour, 2) {
		t.Run(name, func(t *testing.T) {
			with := func(policy runtime.FailurePolicy) *runtime.Limiter {
				return runtime.New(runtime.NewRedisStore(client, patient), quiet, runtime.WithFailurePolicy(policy))
			}
			// The key, as the rule spells it.
			if _, err := with(runtime.FailClosed).Take(ctx, rule.Limit(key("k"))); err != nil {
				t.Fatal(err)
			}
			redisKey := client.Keys(ctx, rule.Prefix+"*").Val()[0]
			client.Set(ctx, redisKey, "somebody else's", 0)
			if _, err := with(runtime.FailClosed).Take(ctx, rule.Limit(key("k"))); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(causes(err), "WRONGTYPE") {
				t.Errorf("a string: got %v, want ErrUnavailable and WRONGTYPE", err)
			}
			client.Del(ctx, redisKey)
			client.SAdd(ctx, redisKey, "somebody else's")

			_, err := with(runtime.FailClosed).Take(ctx, good.Limit(key(name)), rule.Limit(key("k")))
			if !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(causes(err), "WRONGTYPE") {
				t.Errorf("closed: got %v, want ErrUnavailable and WRONGTYPE", err)
			}
			if d, err := with(runtime.FailOpen).Take(ctx, rule.Limit(key("k"))); err != nil || d.Source != runtime.SourceFailure {
				t.Errorf("open: got %+v, %v", d, err)
			}
			local := with(runtime.FailLocal)
			for i := range 3 {
				if d, err := local.Take(ctx, rule.Limit(key("k"))); (err == nil) != (i < 2) || d.Source != runtime.SourceLocal {
					t.Errorf("local: got %+v, %v", d, err)
				}
			}
			wantLeft(t, local, good.Limit(key(name)), 100)
			outcomes := with(runtime.FailClosed).TakeEach(ctx, good.Limit(key(name)), rule.Limit(key("k")), good.Limit(key(name)))
			if outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, runtime.ErrUnavailable) || outcomes[2].Err != nil || outcomes[2].Remaining != 98 {
				t.Errorf("in a batch: got %+v", outcomes)
			}
			ok(t, with(runtime.FailClosed).Reset(ctx, rule.Limit(key("k"))))
			if _, err := with(runtime.FailClosed).Take(ctx, rule.Limit(key("k"))); err != nil {
				t.Errorf("after a reset: %v", err)
			}
		})
	}
}

// TestRollingDeploy has two versions of a rule at work side by side: nothing
// is an error, and in the shorter window of both never more is admitted than
// the larger max. (A change of algorithm or storage starts new counts, so
// there each version admits its own max.)
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	rules := serverRules(time.Hour, 10)
	for name, old := range rules {
		changed := *old
		changed.Max = 15
		longer := *old
		longer.Window = 2 * time.Hour
		coarser := *old
		if old.Algorithm == runtime.SlidingLog {
			coarser.Resolution = time.Minute
		} else if name == "equal" || name == "adaptive" {
			coarser.Buckets = runtime.EqualBuckets(3)
		}
		versions := map[string]*runtime.Rule{"max": &changed, "window": &longer, "width": &coarser}
		for other, rule := range rules {
			if rule.Algorithm != old.Algorithm || rule.Storage != old.Storage {
				algorithm := *rule
				algorithm.Prefix = old.Prefix
				versions["to "+other] = &algorithm
			}
		}
		for what, version := range versions {
			limiter := onRedis(client)
			id := key(fmt.Sprint(name, what))
			admitted := map[*runtime.Rule]int64{}
			for i := range 60 {
				rule := old
				if i%2 == 1 {
					rule = version
				}
				switch _, err := limiter.Take(ctx, rule.Limit(id)); {
				case err == nil:
					admitted[rule]++
				case !errors.Is(err, runtime.ErrLimited):
					t.Fatalf("%s, %s: %v", name, what, err)
				}
			}
			total, most := admitted[old]+admitted[version], max(old.Max, version.Max)
			if strings.HasPrefix(what, "to ") || layered(old) && what == "window" {
				total, most = max(admitted[old], admitted[version]), 10
			}
			if total != most {
				t.Errorf("%s, %s: admitted %d, want %d", name, what, total, most)
			}
		}
	}
}

// TestTuneRedis wants every kind of options to get what is recommended, and
// what is already set to stay.
func TestTuneRedis(t *testing.T) {
	const tuned = 500 * time.Millisecond
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: time.Second}))
	defer client.Close()
	if o := client.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != time.Second || o.WriteTimeout != tuned {
		t.Errorf("standalone: got %+v", o)
	}
	cluster := redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 3}))
	defer cluster.Close()
	if o := cluster.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 3 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("cluster: got %+v", o)
	}
	failover := redis.NewFailoverClient(runtime.TuneRedis(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}))
	defer failover.Close()
	if o := failover.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("sentinel: got %+v", o)
	}
	universal := redis.NewUniversalClient(runtime.TuneRedis(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}))
	defer universal.Close()
	if o := universal.(*redis.Client).Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("universal: got %+v", o)
	}
}

// TestAdvice wants a warning, once, of options with which connections to a
// silent Redis are held for ever, and of no others.
func TestAdvice(t *testing.T) {
	for _, test := range []struct {
		name   string
		client redis.UniversalClient
		warned bool
	}{
		{"default", redis.NewClient(&redis.Options{}), false},
		{"tuned", redis.NewClient(runtime.TuneRedis(&redis.Options{})), false},
		{"no read timeout", redis.NewClient(&redis.Options{ReadTimeout: -1}), true},
		{"no deadlines", redis.NewClient(&redis.Options{ReadTimeout: -2}), true},
		{"a minute", redis.NewClient(&redis.Options{ReadTimeout: time.Minute}), true},
		{"a minute, but contexts", redis.NewClient(&redis.Options{ReadTimeout: time.Minute, ContextTimeoutEnabled: true}), false},
		{"default cluster", redis.NewClusterClient(&redis.ClusterOptions{}), false},
		{"cluster, no read timeout", redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -1}), true},
		{"ring, no read timeout", redis.NewRing(&redis.RingOptions{ReadTimeout: -1}), true},
	} {
		var out bytes.Buffer
		store := runtime.NewRedisStore(test.client)
		runtime.New(store, logger(&out))
		runtime.New(store, logger(&out))
		lines := strings.Count(out.String(), "\n")
		if named := strings.Contains(out.String(), "ContextTimeoutEnabled"); named != test.warned || lines > 1 {
			t.Errorf("%s: the log says %q", test.name, out.String())
		}
		_ = test.client.Close()
	}
}
