package runtime_test

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
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

// sharded returns a client that shards keys over several servers, as twemproxy and Codis do: a command goes to the
// server that the hash of its first key falls to, or of the key's hash tag, a script with all its keys too.
// It is of no type of go-redis, whose hooks a check leaves out.
func sharded(t *testing.T, servers []*redistest.Server, tags bool) redis.UniversalClient {
	var shards []*redis.Client
	for _, s := range servers {
		shards = append(shards, s.Client(t))
	}
	first := func(cmd redis.Cmder) (key string) {
		i := max(1, map[string]int{"eval": 3, "evalsha": 3, "info": 9}[cmd.Name()])
		if args := cmd.Args(); i < len(args) {
			key = fmt.Sprint(args[i])
			if arg, is := args[i].(encoding.BinaryMarshaler); is {
				text, _ := arg.MarshalBinary()
				key = string(text)
			}
		}
		if _, tag, is := strings.Cut(key, "{"); is && tags {
			key, _, _ = strings.Cut(tag, "}")
		}
		return key
	}
	client := servers[0].Client(t)
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) (err error) {
		if redistest.Connects(cmds...) {
			return send()
		}
		for _, cmd := range cmds {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(first(cmd)))
			err = cmp.Or(err, shards[hash.Sum64()>>33%uint64(len(shards))].Process(t.Context(), cmd))
		}
		return err
	}))
	return struct{ *redis.Client }{client}
}

// TestSharded puts a client that shards in between: without the check more is admitted than may
// be, silently; with it the store refuses, once it has seen the first shared batch.
func TestSharded(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)}
	class := observe.ErrorClass(decide.ClassSharded)
	for _, c := range []struct {
		name, prefix  string
		tags, sharded bool
	}{
		{"no hash tag", "a:", false, true},
		{"hash tag without effect", "{b}:", false, true},
		{"hash tag", "{c}:", true, false},
		{"no hash tag, but it would have an effect", "d:", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := sharded(t, servers, c.tags)
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
			if !errors.Is(err, runtime.ErrUnavailable) || runtime.ClassOf(err) != class {
				t.Errorf("take: got %v, %v", runtime.ClassOf(err), err)
			}
			if _, err := limiter.Peek(t.Context(), limit); runtime.ClassOf(err) != class {
				t.Errorf("peek: got %v", err)
			}
			equal(t, "lines", strings.Count(log.String(), "sharded by a proxy: calls"), 1)
			if bridge.StoreOf(store).Failures()[class] == 0 {
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
