package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// serverRules holds a rule for every way of counting, with a prefix of its own
// and without waiting. That with reservations can have no block.
func serverRules(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := modelRules()
	for name, rule := range rules {
		rule.Name, rule.Prefix = name, strings.ReplaceAll(name, " ", "_")+":"
		rule.Window, rule.Max, rule.Burst, rule.Wait = window, max, 0, 0
		if rule.Reserve > 0 {
			rule.Reserve = time.Hour // nothing lapses in a test
		}
		if name == "queue" || rule.Period != runtime.NoPeriod || rule.Debt != runtime.DebtDefault { // which has no such window
			delete(rules, name)
		}
	}
	return rules
}

func TestOneTrip(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	client.Ping(t.Context()) // so that there is a connection
	count := counting(client)
	limiter := onRedis(client, atOnce)
	var limits []runtime.Limit
	for _, rule := range serverRules(time.Hour, 3) {
		if len(limits) < runtime.MaxLimits {
			limits = append(limits, rule.Limit(key("k")))
		}
	}
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}, {"evalsha"}, {"evalsha"}} {
		_, err := limiter.Take(t.Context(), limits...)
		if errors.Is(err, runtime.ErrLimited) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
		same(t, fmt.Sprintf("call %d", i), want, count.sent())
	}
	// Calls with one limit each have a script of their own.
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}} {
		limiter.TakeEach(t.Context(), limits...)
		same(t, fmt.Sprintf("batch %d", i), want, count.sent())
	}
	if _, err := limiter.Peek(t.Context(), limits...); err != nil {
		t.Error(err)
	}
	same(t, "peek", []string{"evalsha"}, count.sent())
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
		equal(t, fmt.Sprintf("key %d: admitted", keys), admittedOf(t, rule.Limit(runtime.NewKey().AddInt(keys)), limiter), 100)
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
			for i := range 36 { // each tries more than it may
				rule := old
				if i%2 == 1 {
					rule = version
				}
				switch _, err := limiter.Take(t.Context(), rule.Limit(id)); {
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
	check := func(kind string, client io.Closer, contexts bool, retries, wantRetries int, dial, read, write, wantRead time.Duration) {
		defer client.Close()
		if !contexts || retries != wantRetries || dial != tuned || read != wantRead || write != tuned {
			t.Errorf("%s: contexts %v, %d tries to dial, timeouts %v, %v and %v", kind, contexts, retries, dial, read, write)
		}
	}
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: time.Second}))
	o := client.Options()
	check("standalone", client, o.ContextTimeoutEnabled, o.DialerRetries, 1, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, time.Second)
	cluster := redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 3}))
	c := cluster.Options()
	check("cluster", cluster, c.ContextTimeoutEnabled, c.DialerRetries, 3, c.DialTimeout, c.ReadTimeout, c.WriteTimeout, tuned)
	for kind, client := range map[string]*redis.Client{
		"sentinel":  redis.NewFailoverClient(runtime.TuneRedis(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})),
		"universal": redis.NewUniversalClient(runtime.TuneRedis(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}})).(*redis.Client),
	} {
		o := client.Options()
		check(kind, client, o.ContextTimeoutEnabled, o.DialerRetries, 1, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, tuned)
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
		var out lines
		store := runtime.NewRedisStore(test.client)
		runtime.New(store, out.Logger())
		runtime.New(store, out.Logger())
		lines := strings.Count(out.String(), "\n")
		if named := strings.Contains(out.String(), "ContextTimeoutEnabled"); named != test.warned || lines > 1 {
			t.Errorf("%s: the log says %q", test.name, out.String())
		}
		_ = test.client.Close()
	}
}
