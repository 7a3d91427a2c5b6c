package runtime_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestOneTrip wants one trip for a call, however many limits it has, for calls that are taken
// together, and for a look at one call or at many limits.
func TestOneTrip(t *testing.T) {
	client := ownRedis(t)
	client.Ping(t.Context()) // so that there is a connection
	limiter, count := onRedis(client, atOnce, runtime.OwnScripts), counting(client)
	limits := testOneTrip(t, limiter, count)
	// Calls with one limit each have a script of their own.
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}} {
		limiter.TakeEach(t.Context(), limits...)
		same(t, fmt.Sprintf("batch %d", i), want, count.sent())
	}
	_, err := limiter.Peek(t.Context(), limits...)
	ok(t, err)
	same(t, "peek", []string{"evalsha"}, count.sent())
	usages, err := limiter.Usage(t.Context(), slices.Repeat(limits, 6)...)
	ok(t, err)
	equal(t, "usages", len(usages), 6*len(limits))
	same(t, "usage", []string{"evalsha"}, count.sent())
}

// testOneTrip wants one trip for a call with many limits. On a cluster a tag in the prefix puts
// their keys in one slot.
func testOneTrip(t *testing.T, limiter *runtime.Limiter, count *commands) (limits []runtime.Limit) {
	for _, r := range serverRules(time.Minute-time.Second, 3) {
		if len(limits) < rule.MaxLimits {
			r.Prefix = "{tagged}:" + r.Prefix
			limits = append(limits, r.Limit(key("k")))
		}
	}
	count.sent()
	for i, want := range [][]string{{"evalsha", "eval"}, {"evalsha"}, {"evalsha"}, {"evalsha"}} {
		if _, err := limiter.Take(t.Context(), limits...); errors.Is(err, runtime.ErrLimited) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
		same(t, fmt.Sprintf("call %d", i), want, count.sent())
	}
	return limits
}

// TestScriptFlush forgets the script all the time.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	var flushed atomic.Int64
	var over atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for ; !over.Load(); time.Sleep(5 * time.Millisecond) {
			ok(t, client.ScriptFlush(t.Context()).Err())
			flushed.Add(1)
		}
	})
	limiter := onRedis(server.Client(t))
	keys := 0
	for ; flushed.Load() < 20 || keys < 20; keys++ {
		limit := perHour(100).Limit(key(fmt.Sprint(keys)))
		var admitted atomic.Int64
		concurrently(64, func(int) { admitted.Add(int64(passing(t, limiter, limit, 5))) })
		equal(t, fmt.Sprintf("key %d: admitted", keys), admitted.Load(), 100)
	}
	over.Store(true)
	wait.Wait()
	t.Logf("%d flushes while %d keys were called on", flushed.Load(), keys)
}

// TestRollingDeploy has two versions of a rule at work side by side: nothing is an error, and
// in the shorter window of both never more is admitted than the larger max. (A change of
// algorithm or storage starts new counts, so there each version admits its own max.)
func TestRollingDeploy(t *testing.T) {
	client := ownRedis(t)
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
			coarser.Buckets = rule.EqualBuckets(3)
		}
		versions := map[string]*runtime.Rule{"max": &changed, "window": &longer, "width": &coarser}
		for other, r := range rules {
			quick := other == "fixed" || other == "log zset"
			if (quick || effort.Full()) && (r.Algorithm != old.Algorithm || r.Storage != old.Storage) {
				algorithm := *r
				algorithm.Prefix = old.Prefix
				versions["to "+other] = &algorithm
			}
		}
		for what, version := range versions {
			limiter := onRedis(client)
			id := key(fmt.Sprint(name, what))
			var admitted [2]int64
			for i := range 36 { // each tries more than it may
				admitted[i%2] += int64(passing(t, limiter, []*runtime.Rule{old, version}[i%2].Limit(id), 1))
			}
			total, most := admitted[0]+admitted[1], max(old.Max, version.Max)
			if strings.HasPrefix(what, "to ") || strings.Contains(name, "layer") && what == "window" {
				total, most = max(admitted[0], admitted[1]), 10
			}
			equal(t, fmt.Sprint(name, ", ", what, ": admitted"), total, most)
		}
	}
}

// A clock of Redis that steps back, as when a replica is promoted whose clock is behind, is
// reported once.
func TestClockStepsBack(t *testing.T) {
	client := ownRedis(t)
	var log lines
	limiter := runtime.New(runtime.NewRedisStore(client, patient, runtime.Change(func(text string) string {
		return strings.Replace(text, "redis.call('TIME')", "{redis.call('GET', 'clock'), '0'}", 1)
	})), log.Logger())
	for i, clock := range []int64{4_000_003_600, 4_000_000_000, 4_000_000_000} {
		ok(t, client.Set(t.Context(), "clock", clock, 0).Err())
		taken(t, limiter, wide.Limit(nil))
		equal(t, fmt.Sprintf("call %d: lines", i), strings.Count(log.String(), "clock of the rate limit store stepped back"), min(i, 1))
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
