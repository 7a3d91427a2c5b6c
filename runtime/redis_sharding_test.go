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

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/shardproxy"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/observe"
)

// checking returns a limiter that checks whether keys are sharded, its store and its log.
func checking(t *testing.T, client redis.UniversalClient, again time.Duration, opts ...runtime.RedisOption) (*runtime.Limiter, *runtime.RedisStore, *lines) {
	log := new(lines)
	store := runtime.NewRedisStore(client, append([]runtime.RedisOption{patient, runtime.CheckSharding(again)}, opts...)...)
	t.Cleanup(func() { _ = store.Close() })
	return runtime.New(store, closed, runtime.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))), store, log
}

// rush has callers take from 30 keys at the same time, and returns how many were
// admitted where each key admits 10, and whether others were not decided.
func rush(t *testing.T, limiter *runtime.Limiter, prefix string) (admitted int64, failed bool) {
	t.Helper()
	rule := &runtime.Rule{Name: "r", Prefix: prefix, Window: time.Hour, Max: 10}
	var n, errs atomic.Int64
	concurrently(60, func(caller int) {
		for i := range 30 { // callers in step would share batches of one key
			_, err := limiter.Take(t.Context(), rule.Limit(key(fmt.Sprint((i+caller)%30))))
			if err == nil {
				n.Add(1)
			} else if !errors.Is(err, runtime.ErrLimited) {
				errs.Add(1)
			}
		}
	})
	return n.Load(), errs.Load() > 0
}

// TestSharded puts a proxy that shards in between: without the check more is admitted than may
// be, silently; with it the store refuses, once it has seen the first shared batch.
func TestSharded(t *testing.T) {
	t.Parallel()
	var addrs []string
	for range 3 {
		addrs = append(addrs, redistest.Start(t).Addr)
	}
	sharded := observe.ErrorClass(decide.ClassSharded)
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
			client := redis.NewClient(&redis.Options{Addr: c.start(t, addrs...).Addr})
			t.Cleanup(func() { _ = client.Close() })
			if admitted, failed := rush(t, onRedis(client, atOnce), c.prefix+"unchecked:"); failed || c.sharded != (admitted > 300) {
				t.Errorf("without a check: %d admitted, failed %v", admitted, failed)
			}
			limiter, store, log := checking(t, client, 50*time.Millisecond) // a check may take too long on a busy machine
			rush(t, limiter, c.prefix)
			if !c.sharded {
				eventually(t, "it is checked", func() bool { return store.ShardingChecks() > 0 })
				_ = store.Close() // the check is over then
				if admitted, failed := rush(t, limiter, c.prefix+"then:"); admitted != 300 || failed {
					t.Errorf("%d admitted, failed %v", admitted, failed)
				}
				return
			}
			eventually(t, "it is noticed", func() bool { return strings.Contains(log.String(), "keys are sharded by a proxy") })
			limit := (&runtime.Rule{Name: "r", Prefix: c.prefix + "then:", Window: time.Hour, Max: 10}).Limit(key("k"))
			_, err := limiter.Take(t.Context(), limit)
			if !errors.Is(err, runtime.ErrUnavailable) || runtime.ClassOf(err) != sharded {
				t.Errorf("take: got %v, %v", runtime.ClassOf(err), err)
			}
			if _, err := limiter.Peek(t.Context(), limit); runtime.ClassOf(err) != sharded {
				t.Errorf("peek: got %v", err)
			}
			equal(t, "lines", strings.Count(log.String(), "sharded by a proxy: calls"), 1)
			if bridge.StoreOf(store).Failures()[sharded] == 0 {
				t.Error("the failures are not counted")
			}
		})
	}
}

// TestNotSharded wants the check to be made once or twice on a single server, to
// find nothing, and to leave no keys behind.
func TestNotSharded(t *testing.T) {
	client := ownRedis(t)
	limiter, store, _ := checking(t, client, time.Millisecond)
	rule := func(prefix string) runtime.Limit {
		return (&runtime.Rule{Name: prefix, Prefix: prefix, Window: time.Hour, Max: 100}).Limit(nil)
	}
	takes := func(limits ...runtime.Limit) {
		for range 10 {
			taken(t, limiter, limits...)
		}
	}
	takes(rule("alone:"))
	equal(t, "checks before any batch was shared", store.ShardingChecks(), 0)
	takes(rule("{x}a:"), rule("{x}b:"))
	eventually(t, "one slot is checked", func() bool { return store.ShardingChecks() == 1 })
	takes(rule("{x}a:"), rule("{y}b:"))
	eventually(t, "two are checked", func() bool { return store.ShardingChecks() == 2 })
	ok(t, store.Close())
	takes(rule("{x}a:"), rule("{x}b:"))
	equal(t, "checks", store.ShardingChecks(), 2)
	for _, key := range client.Keys(t.Context(), "*%check*").Val() {
		const gone = -2
		if left := client.PTTL(t.Context(), key).Val(); left != gone {
			between(t, key+" lives for", left, 1, 6*time.Second)
		}
	}
}

// A panicky client panics when it is to send several commands at a time, as only a check does.
type panicky struct{ *redis.Client }

func (panicky) Pipeline() redis.Pipeliner { panic("no pipelines") }

// TestShardingUnknown keeps the check from its result: by an error, by a server
// that loses keys at once, and by a client that panics.
func TestShardingUnknown(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{"error": "error('no')", "keys are lost": "redis.call('FLUSHALL')", "panic": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var client redis.UniversalClient = redistest.Start(t).Client(t)
			onPeek := runtime.Change(func(text string) string { return "if ARGV[1] == 'peek' then " + do + " end\n" + text })
			if name == "panic" {
				client = panicky{client.(*redis.Client)}
			}
			limiter, store, log := checking(t, client, time.Millisecond, onPeek)
			both := []runtime.Limit{narrow.Limit(nil).WithMax(2), wide.Limit(nil)}
			taken(t, limiter, both...)
			eventually(t, "the checks end", func() bool { return strings.Contains(log.String(), "it is not known whether") })
			equal(t, "checks", store.ShardingChecks(), 4)
			taken(t, limiter, both...) // it decides all the same
		})
	}
}
