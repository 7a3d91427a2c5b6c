package runtime_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// calling is a [runtime.RedisOption] that has scripts call commands by the body of a Lua
// function of (name, ...).
func calling(body string) runtime.RedisOption {
	const call = "local call, format, sub, ceil = redis.call,"
	return runtime.Change(func(text string) string {
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
		want             runtime.ErrorClass
		whole            bool // nobody in the batch is answered: the server decides nothing now
	}{
		{"Redis 6.2", `'@user_script: 7: -` + escaped(readonly) + `\r\n'`, runtime.ClassReadOnly, true},
		{"Redis 6.2, of a function", `'@user_script: 123: -` + escaped(readonly) + `'`, runtime.ClassReadOnly, true},
		{"Redis 7.0, 7.2, 8.x and Valkey", `{err = '` + escaped(readonly) + `', source = '@user_script', line = '7'}`, runtime.ClassReadOnly, true},
		{"Redis 6.2", `'@user_script: 7: -` + escaped(oom) + `\r\n'`, runtime.ClassOOM, false},
		{"Redis 7.0 and later, Valkey", `{err = '` + escaped(oom) + `'}`, runtime.ClassOOM, false},
		{"Redis 6.2", `'@user_script: 7: -` + escaped(disk) + `\r\n'`, runtime.ClassReadOnly, false},
		{"Redis 7.0 and later, Valkey", `{err = '` + escaped(disk) + `'}`, runtime.ClassReadOnly, false},
		{"Redis 6.2", `'@user_script: 7: ` + escaped(forbid) + `'`, runtime.ClassAuth, false},
		{"Redis 7.0", `{err = 'ERR ` + escaped(forbid) + `'}`, runtime.ClassAuth, false},
		{"Redis 7.2, 8.x and Valkey", `{err = 'ERR ACL failure in script: User default has no permissions to run the \'zadd\' command'}`, runtime.ClassAuth, false},
		{"Redis 6.2", `'@user_script: 7: Unknown Redis command called from Lua script'`, runtime.ClassScript, false},
		{"Redis 7.0 and later, Valkey", `{err = 'ERR Unknown Redis command called from script'}`, runtime.ClassScript, false},
		{"Redis 6.2", `'WRONGTYPE Operation against a key holding the wrong kind of value'`, runtime.ClassWrongType, false},
		{"Lua, about a foreign value", `'user_script:7: attempt to perform arithmetic on a nil value'`, runtime.ClassWrongType, false},
	} {
		timeout := runtime.WithTimeout(10 * time.Second)
		if test.whole { // it is asked for as long
			timeout = runtime.WithTimeout(100 * time.Millisecond)
		}
		store := runtime.NewRedisStore(client, atOnce, timeout,
			calling("if name == 'ZADD' then error("+test.raised+", 0) end\nreturn redis.call(name, ...)"))
		rule := func(prefix string) *runtime.Rule {
			return &runtime.Rule{Name: prefix, Prefix: prefix, Window: time.Hour, Max: 10}
		}
		charge := func(prefix string) rawstore.Charge {
			return rawstore.Charge{Rule: rule(prefix), Key: []byte(prefix), Max: 10, Cost: 1}
		}
		for name, charges := range map[string][]rawstore.Charge{
			"one limit": {charge("a:")}, "two limits": {charge("a:"), charge("b:")},
		} {
			calls := []rawstore.Call{{Charges: charges}}
			err := rawstore.On(store).Take(t.Context(), calls)
			if test.whole {
				if err == nil {
					t.Errorf("%s, %s: %s: the server was taken for one that decides: %v", test.versions, name, test.raised, calls[0].Err)
				}
				continue
			}
			if err != nil || calls[0].Err == nil || runtime.ClassOf(calls[0].Err) != test.want {
				t.Errorf("%s, %s: %s: got %v and %v of %v, want %v", test.versions, name, test.raised, err, calls[0].Err, runtime.ClassOf(calls[0].Err), test.want)
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
	for name, option := range map[string]runtime.RedisOption{
		"tables, as from Redis 7.0 on": func(*runtime.RedisStore) {},
		"texts, as before": calling(`local reply = redis.pcall(name, ...)
if type(reply) == 'table' and reply.err then
  error('@user_script: 7: -' .. reply.err .. '\r\n', 0)
end
return reply`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			old, next := redistest.Start(t), redistest.Start(t)
			var address atomic.Pointer[string]
			address.Store(&old.Addr)
			client := old.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, *address.Load())
				}
			})
			store := runtime.NewRedisStore(client, atOnce, option)
			limiter := runtime.New(store, quiet, closed)
			rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1_000_000}
			take := func() error {
				_, err := limiter.Take(ctx, rule.Limit(key("k")))
				return err
			}
			for begin := time.Now(); take() != nil; {
				if time.Since(begin) > 10*time.Second {
					t.Fatal(take())
				}
			}
			follow(t, old.Client(t), next)
			address.Store(&next.Addr)
			begin, inRow := time.Now(), 0
			eventually(t, "the new master decides", func() bool {
				if err := take(); err == nil {
					inRow++
				} else if inRow = 0; time.Since(begin) > 2*time.Second && runtime.ClassOf(err) == runtime.ClassReadOnly {
					t.Fatalf("after %v: %v; %v", time.Since(begin), err, store.Failures())
				}
				return inRow == 20
			})
		})
	}
}
