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
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/storetest"
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
