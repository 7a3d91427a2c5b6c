package script_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/documents"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
)

// calling has scripts call commands by the body of a Lua function of (name, ...).
func calling(body string) func(*redisengine.Config) {
	const call = "local call, format, sub, ceil = redis.call,"
	return changing(func(text string) string {
		return strings.Replace(text, call, "local function call(name, ...)\n"+body+"\nend\nlocal format, sub, ceil =", 1)
	})
}

// TestErrorTextsOfVersions has a command that writes fail in the script as servers of every
// version have it fail: by a text before Redis 7.0, and by a table from then on.
func TestErrorTextsOfVersions(t *testing.T) {
	t.Parallel()
	const (
		readonly = "READONLY You can't write against a read only replica."
		oom      = "OOM command not allowed when used memory > 'maxmemory'."
		disk     = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."
		forbid   = "The user executing the script can't run this command or subcommand"
	)
	client := redistest.Start(t).Client(t)
	for _, test := range []struct {
		versions, raised string
		want             observe.ErrorClass
		whole            bool // nobody in the batch is answered: the server decides nothing now
	}{
		{"Redis 6.2", `'@user_script: 7: -` + escaped(readonly) + `\r\n'`, observe.ClassReadOnly, true},
		{"Redis 6.2, of a function", `'@user_script: 123: -` + escaped(readonly) + `'`, observe.ClassReadOnly, true},
		{"Redis 7.0, 7.2, 8.x and Valkey", `{err = '` + escaped(readonly) + `', source = '@user_script', line = '7'}`, observe.ClassReadOnly, true},
		{"Redis 6.2", `'@user_script: 7: -` + escaped(oom) + `\r\n'`, observe.ClassOOM, false},
		{"Redis 7.0 and later, Valkey", `{err = '` + escaped(oom) + `'}`, observe.ClassOOM, false},
		{"Redis 6.2", `'@user_script: 7: -` + escaped(disk) + `\r\n'`, observe.ClassReadOnly, false},
		{"Redis 7.0 and later, Valkey", `{err = '` + escaped(disk) + `'}`, observe.ClassReadOnly, false},
		{"Redis 6.2", `'@user_script: 7: ` + escaped(forbid) + `'`, observe.ClassAuth, false},
		{"Redis 7.0", `{err = 'ERR ` + escaped(forbid) + `'}`, observe.ClassAuth, false},
		{"Redis 7.2, 8.x and Valkey", `{err = 'ERR ACL failure in script: User default has no permissions to run the \'zadd\' command'}`, observe.ClassAuth, false},
		{"Redis 6.2", `'@user_script: 7: Unknown Redis command called from Lua script'`, observe.ErrorClass(decide.ClassNoScript), false},
		{"Redis 7.0 and later, Valkey", `{err = 'ERR Unknown Redis command called from script'}`, observe.ErrorClass(decide.ClassNoScript), false},
		{"Redis 6.2", `'WRONGTYPE Operation against a key holding the wrong kind of value'`, observe.ClassWrongType, false},
		{"Lua, about a foreign value", `'user_script:7: attempt to perform arithmetic on a nil value'`, observe.ClassWrongType, false},
	} {
		raise := calling("if name == 'ZADD' then error(" + test.raised + ", 0) end\nreturn redis.call(name, ...)")
		store := newStore(client, raise, func(cfg *redisengine.Config) {
			if test.whole { // it is asked for as long
				cfg.Timeout = 100 * time.Millisecond
			}
		})
		rule := storetest.WaysOf(time.Hour, 10)["log zset"]
		one := single(rule, "a:", 1)[0].Charges
		for _, charges := range [][]rawstore.Charge{one, append(one, chargeOf(rule, "b:", 1))} {
			calls := []rawstore.Call{{Charges: slices.Clone(charges)}}
			err := rawstore.Wrap(store).Take(t.Context(), calls)
			if test.whole != (err != nil) || err == nil && (calls[0].Err == nil || runtime.ClassOf(calls[0].Err) != test.want) {
				t.Errorf("%s, %d limits: %s: got %v and %v, want %v", test.versions, len(charges), test.raised, err, calls[0].Err, test.want)
			}
		}
	}
}

func escaped(text string) string { return strings.ReplaceAll(text, "'", `\'`) }

// TestDemotedMaster demotes the master behind a name that connections stay with, as a DNS
// name or a virtual address: calls find the new master, whose address the name has by then,
// on servers that raise errors by a text as on those that raise tables.
func TestDemotedMaster(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*redisengine.Config){
		"tables, as from Redis 7.0 on": func(*redisengine.Config) {},
		"texts, as before": calling(`local reply = redis.pcall(name, ...)
if type(reply) == 'table' and reply.err then
  error('@user_script: 7: -' .. reply.err .. '\r\n', 0)
end
return reply`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := redistest.Start(t), redistest.Start(t)
			var address atomic.Pointer[string]
			address.Store(&old.Addr)
			client := old.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, *address.Load())
				}
			})
			limiter := newLimiter(client, option, func(cfg *redisengine.Config) { cfg.Timeout = runtime.DefaultTimeout })
			take := func() error {
				_, err := limiter.Take(t.Context(), wide.Limit(key("k")))
				return err
			}
			eventually(t, "the old master decides", func() bool { return take() == nil })
			old.Follow(t, next)
			address.Store(&next.Addr)
			inRow, stale := 0, 0
			eventually(t, "the new master decides", func() bool {
				if err := take(); err == nil {
					inRow++
				} else {
					inRow = 0
					// Each connection there was may say it once or twice.
					if runtime.ClassOf(err) == observe.ClassReadOnly {
						stale++
					}
					if stale > 200 {
						t.Fatalf("after %d such calls: %v", stale, err)
					}
				}
				return inRow == 20
			})
		})
	}
}

// TestForeignValue finds somebody else's values of the right type under its keys, and its
// own that are damaged, alone and in the middle of a run, and wants an error and the values
// as they were.
func TestForeignValue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	store := newStore(client)
	rules := storetest.WaysOf(time.Hour, 5)
	for name, rule := range storetest.BlockingWaysOf(time.Hour, 5) {
		rule.Block = time.Second
		if !stored(rule) || rule.Storage == runtime.StoragePacked {
			rules[name+" with a block"] = rule
		}
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			key := documents.Prefix(t)
			for _, value := range foreignValues(t, client, key, rule) {
				ok(t, client.Del(ctx, key).Err())
				value()
				before := client.Dump(ctx, key).Val()
				if before == "" {
					t.Fatal("there is no value")
				}
				for _, keys := range [][]string{{key}, {key + "before", key, key + "after"}, {key, key}} {
					var calls []rawstore.Call
					for _, key := range keys {
						calls = append(calls, single(rule, key, 1)...)
					}
					ok(t, rawstore.Wrap(store).Take(ctx, calls))
					for i, k := range keys {
						if foreign := runtime.ClassOf(calls[i].Err) == observe.ClassWrongType; foreign != (k == key) || !foreign && calls[i].Err != nil {
							t.Errorf("call %d of %d: got %+v, %v", i, len(calls), calls[i].Charges[0].Result, calls[i].Err)
						}
					}
					client.Del(ctx, key+"before", key+"after")
					if rule.Algorithm == runtime.Concurrency {
						continue // is never charged more
					}
					charges := make([]terms.Charge, len(keys))
					for i := range keys {
						charges[i] = calls[i].Charges[0].Engine()
					}
					ok(t, rawstore.Wrap(store).Store.Settle(ctx, charges))
					for i, k := range keys {
						if foreign := runtime.ClassOf(charges[i].Err) == observe.ClassWrongType; foreign != (k == key) || !foreign && charges[i].Err != nil {
							t.Errorf("settle charge %d of %d: %v", i, len(charges), charges[i].Err)
						}
					}
					client.Del(ctx, key+"before", key+"after")
				}
				for _, max := range []int64{5, 500} {
					if max == 500 && client.Type(ctx, key).Val() == "string" && client.StrLen(ctx, key).Val() == 0 {
						continue // a part of nothing is read as of no key
					}
					for _, do := range []storetest.Operation{take, peek} {
						calls := single(rule, key, 1)
						calls[0].Charges[0].Max = max
						ok(t, do(rawstore.Wrap(store), ctx, calls))
						if runtime.ClassOf(calls[0].Err) != observe.ClassWrongType {
							t.Errorf("max %d: got %+v, %v", max, calls[0].Charges[0].Result, calls[0].Err)
						}
					}
				}
				equal(t, client.Type(ctx, key).Val(), client.Dump(ctx, key).Val(), before)
			}
		})
	}
}

// foreignValues returns functions that set a key to values of the type that a rule's keys
// have, and that are none of the rule's.
func foreignValues(t *testing.T, client *redis.Client, key string, rule *runtime.Rule) (set []func()) {
	if stored(rule) && rule.Storage != runtime.StoragePacked {
		add := func(members ...redis.Z) { set = append(set, func() { client.ZAdd(t.Context(), key, members...) }) }
		for _, member := range []string{"", "anna", "10.0.0.1", "1700000000 or so"} {
			add(redis.Z{Score: 12, Member: member})
		}
		add(redis.Z{Score: 7, Member: "anna"}, redis.Z{Score: 8, Member: "ben"}, redis.Z{Score: 9, Member: "cleo"}, redis.Z{Score: 10, Member: "dora"})
		return set
	}
	texts := []string{
		"", "hello", "7", `{"id": 7, "name": "a name that is rather long"}`, strings.Repeat("7 ", 30),
		// As long as a key that holds no more than a block.
		"12345678", "\x01\x00\x00\x00\x00\x00\x00\x00", "\x05\x00\x00\x00\x00\x00\x00\x01",
	}
	if rule.Storage != runtime.StoragePacked && rule.Reserve == 0 { // which TestPackedBroken damages
		taken := must(t, newStore(client), take, single(rule, key, 1))
		whole := client.Get(t.Context(), key).Val()
		texts = append(texts, "\x01", "\x05"+whole[1:], whole[:20], whole[:len(whole)-1], whole[:len(whole)-7], whole+"\x00")
		if !taken.Allowed {
			t.Fatal("the key is not new")
		}
	}
	for _, text := range texts {
		set = append(set, func() { client.Set(t.Context(), key, text, 0) })
	}
	return set
}
