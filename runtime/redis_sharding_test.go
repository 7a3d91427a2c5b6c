package runtime_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/shardproxy"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/failure"
)

// checked makes a check that is not conclusive again at once.
var checked = runtime.CheckSharding(time.Millisecond)

// shards starts servers and returns their addresses.
func shards(t *testing.T) (addrs []string) {
	for range 3 {
		addrs = append(addrs, redistest.Start(t).Addr)
	}
	return addrs
}

func clientOf(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// rush has callers take from 30 keys at the same time, and returns how many were
// admitted where each key admits 10, and a failure.
func rush(t *testing.T, limiter *runtime.Limiter, prefix string) (admitted int64, failed error) {
	t.Helper()
	rule := &runtime.Rule{Name: "r", Prefix: prefix, Window: time.Hour, Max: 10}
	var n atomic.Int64
	var err atomic.Pointer[error]
	concurrently(60, func(caller int) {
		for i := range 30 { // callers in step would share batches of one key
			switch _, e := limiter.Take(t.Context(), rule.Limit(key(fmt.Sprint((i+caller)%30)))); {
			case e == nil:
				n.Add(1)
			case !errors.Is(e, runtime.ErrLimited):
				err.Store(&e)
			}
		}
	})
	if e := err.Load(); e != nil {
		failed = *e
	}
	return n.Load(), failed
}

// TestSharded puts a proxy that shards in between: without the check more is
// admitted than may be, silently; with it the store refuses, once it has seen the
// first shared batch.
func TestSharded(t *testing.T) {
	t.Parallel()
	addrs := shards(t)
	for _, c := range []struct {
		name, prefix string
		start        func(testing.TB, ...string) *shardproxy.Proxy
		sharded      bool
	}{
		{"no hash tag", "a:", shardproxy.Start, true},
		{"hash tag without effect", "{b}:", shardproxy.Start, true},
		{"hash tag", "{c}:", shardproxy.StartTagged, false},
		{"no hash tag, but it would have an effect", "d:", shardproxy.StartTagged, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := c.start(t, addrs...)
			store := runtime.NewRedisStore(clientOf(t, proxy.Addr), patient, runtime.WithDenialMemory(0))
			admitted, err := rush(t, runtime.New(store, quiet, closed), c.prefix+"unchecked:")
			if err != nil || c.sharded != (admitted > 300) {
				t.Errorf("without a check: %d admitted, %v", admitted, err)
			}

			var log lines
			// A check may take too long on a busy machine.
			store = runtime.NewRedisStore(clientOf(t, proxy.Addr), patient, runtime.CheckSharding(50*time.Millisecond))
			limiter := runtime.New(store, closed, runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			defer store.Close()
			rush(t, limiter, c.prefix)
			if !c.sharded {
				eventually(t, "it is checked", func() bool { return store.ShardingChecks() > 0 })
				_ = store.Close() // the check is over then
				if admitted, err := rush(t, limiter, c.prefix+"then:"); admitted != 300 || err != nil {
					t.Errorf("%d admitted, %v", admitted, err)
				}
				return
			}
			eventually(t, "it is noticed", func() bool { return strings.Contains(log.String(), "keys are sharded by a proxy") })
			rule := &runtime.Rule{Name: "r", Prefix: c.prefix + "then:", Window: time.Hour, Max: 10}
			_, err = limiter.Take(t.Context(), rule.Limit(key("k")))
			if !errors.Is(err, runtime.ErrUnavailable) || runtime.ClassOf(err) != runtime.ErrorClass(failure.Sharded) {
				t.Errorf("take: got %v, %v", runtime.ClassOf(err), err)
			}
			if _, err := limiter.Peek(t.Context(), rule.Limit(key("k"))); runtime.ClassOf(err) != runtime.ErrorClass(failure.Sharded) {
				t.Errorf("peek: got %v", err)
			}
			equal(t, "lines", strings.Count(log.String(), "sharded by a proxy: calls"), 1)
			if store.Failures()[runtime.ErrorClass(failure.Sharded)] == 0 {
				t.Error("the failures are not counted")
			}
		})
	}
}

// TestNotSharded wants the check to be made once or twice on a single server, to
// find nothing, and to leave no keys behind.
func TestNotSharded(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, checked)
	limiter := runtime.New(store, quiet, closed)
	alone := &runtime.Rule{Name: "alone", Window: time.Hour, Max: 100}
	for range 10 {
		taken(t, limiter, alone.Limit(nil))
	}
	equal(t, "checks before any batch was shared", store.ShardingChecks(), 0)
	a := &runtime.Rule{Name: "a", Prefix: "{x}a:", Window: time.Hour, Max: 100}
	b := &runtime.Rule{Name: "b", Prefix: "{x}b:", Window: time.Hour, Max: 100}
	both := func(limits ...runtime.Limit) {
		t.Helper()
		for range 10 {
			taken(t, limiter, limits...)
		}
	}
	both(a.Limit(nil), b.Limit(nil))
	eventually(t, "it is checked", func() bool { return store.ShardingChecks() == 1 })
	apart := &runtime.Rule{Name: "b", Prefix: "{y}b:", Window: time.Hour, Max: 100}
	both(a.Limit(nil), apart.Limit(nil))
	eventually(t, "it is checked", func() bool { return store.ShardingChecks() == 2 })
	ok(t, store.Close())
	both(a.Limit(nil), b.Limit(nil))
	equal(t, "checks", store.ShardingChecks(), 2)
	for _, key := range client.Keys(t.Context(), "*%check*").Val() {
		if ttl := client.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 6*time.Second {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

// TestShardingUnknown keeps the check from its result: by an error, by a server
// that loses keys at once, and by a client that panics.
func TestShardingUnknown(t *testing.T) {
	t.Parallel()
	const checks = 4
	onPeek := func(do string) runtime.RedisOption {
		return runtime.Change(func(text string) string { return "if ARGV[1] == 'peek' then " + do + " end\n" + text })
	}
	for name, c := range map[string]struct {
		option runtime.RedisOption
		wrap   func(*redis.Client) redis.UniversalClient
	}{
		"error":         {option: onPeek("error('no')")},
		"keys are lost": {option: onPeek("redis.call('FLUSHALL')")},
		"panic":         {option: patient, wrap: func(c *redis.Client) redis.UniversalClient { return panicky{c} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			var client redis.UniversalClient = server.Client(t)
			if c.wrap != nil {
				client = c.wrap(server.Client(t))
			}
			var log lines
			store := runtime.NewRedisStore(client, patient, checked, c.option)
			limiter := runtime.New(store, closed, runtime.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			a := &runtime.Rule{Name: "a", Prefix: "a:", Window: time.Hour, Max: 100}
			b := &runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 100}
			taken(t, limiter, a.Limit(nil), b.Limit(nil))
			eventually(t, "the checks end", func() bool { return strings.Contains(log.String(), "it is not known whether") })
			equal(t, "checks", store.ShardingChecks(), checks)
			if _, err := limiter.Take(t.Context(), a.Limit(nil), b.Limit(nil)); err != nil {
				t.Errorf("the store does not decide any more: %v", err)
			}
		})
	}
}

// A panicky client panics when it is to send several commands at a time, as only
// a check does.
type panicky struct{ *redis.Client }

func (panicky) Pipeline() redis.Pipeliner { panic("no pipelines") }
