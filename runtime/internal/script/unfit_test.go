package script_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/observe"
)

// caller is the part of a key that nobody is to read in an error.
const caller = "alice@example.com"

var wide = &runtime.Rule{Name: "wide", Prefix: "wide:", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}

// struct32 is Lua for the library struct as a server of 32 bits has it.
const struct32 = `(function()
  local struct = rawget(_G, 'struct')
  local function cut(...)
    local values = { ... }
    for i, value in ipairs(values) do
      values[i] = value % 2 ^ 32
    end
    return unpack(values)
  end
  return {
    pack = function(form, ...) return struct.pack(form, cut(...)) end,
    unpack = function(form, ...) return cut(struct.unpack(form, ...)) end,
  }
end)()`

// wantUnfit wants calls not to be decided because the server is unfit.
func wantUnfit(t *testing.T, what string, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if runtime.ClassOf(err) != observe.ErrorClass(decide.ClassUnfit) {
			t.Fatalf("%s: got %v, of class %v", what, err, runtime.ClassOf(err))
		}
	}
}

// TestNarrowServer takes by every algorithm from a server of 32 bits, alone, with several
// limits and together with others. It refuses from the first call on, and nothing is charged.
func TestNarrowServer(t *testing.T) {
	client := ownRedis(t)
	on32 := changing(func(text string) string {
		return strings.ReplaceAll(text, "rawget(_G, 'struct')", struct32)
	})
	for name, rule := range storetest.WaysOf(time.Minute, 3) {
		limiter := newLimiter(client, on32)
		for range 5 {
			_, alone := limiter.Take(t.Context(), rule.Limit(nil))
			_, both := limiter.Take(t.Context(), rule.Limit(nil), wide.Limit(nil))
			_, peeked := limiter.Peek(t.Context(), rule.Limit(nil))
			wantUnfit(t, name, alone, both, peeked, limiter.TakeEach(t.Context(), rule.Limit(nil), wide.Limit(nil))[0].Err)
			if !strings.Contains(limittest.Causes(alone), "64 bits") {
				t.Errorf("%s: got %v", name, limittest.Causes(alone))
			}
		}
	}
	equal(t, "keys", client.DBSize(t.Context()).Val(), 0)
}

// TestFitServer wants a server to be looked at once, by the first script, and again when
// the store has another client.
func TestFitServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	counted := changing(func(text string) string {
		return strings.Replace(text, "if library and", "redis.call('INCR', 'looked')\n  if library and", 1)
	})
	rules := storetest.WaysOf(time.Minute, 1000)
	for n := 1; n < 4; n++ {
		limiter := newLimiter(server.Client(t), counted)
		for range 3 {
			for _, rule := range rules {
				taken(t, limiter, rule.Limit(key("k")))
			}
		}
		if looked, err := admin.Get(t.Context(), "looked").Int(); err != nil || looked != n {
			t.Errorf("store %d: looked %d times, %v", n, looked, err)
		}
	}
}

// TestServerWithoutLua asks servers that run no Lua scripts: the error says so.
func TestServerWithoutLua(t *testing.T) {
	t.Parallel()
	without := redistest.Start(t, "--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "")
	for name, answers := range map[string]map[string]error{
		"the commands are unknown": nil,
		"Valkey built without Lua": {
			"evalsha": redistest.Reply("NOSCRIPT No matching script. Please use EVAL."),
			"eval":    redistest.Reply("ERR Could not find scripting engine 'lua'"),
		},
	} {
		client := without.Client(t)
		client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
			if err := answers[cmds[0].Name()]; err != nil {
				return redistest.Failing(cmds, err)
			}
			return send()
		}))
		limiter := newLimiter(client)
		_, err := limiter.Take(t.Context(), wide.Limit(key(caller)))
		if runtime.ClassOf(err) != observe.ErrorClass(decide.ClassNoScript) || !errors.Is(err, runtime.ErrUnavailable) ||
			!strings.Contains(limittest.Causes(err), "runs no Lua scripts") || strings.Contains(err.Error(), caller) {
			t.Errorf("%s: got %v, of class %v", name, err, runtime.ClassOf(err))
		}
	}
}

// declared is Lua for redis as of a server that forbids scripts the keys that the command
// does not name.
const declared = `(function()
  local real, named = redis, {}
  for _, key in ipairs(KEYS) do
    named[key] = true
  end
  local function check(name, ...)
    for i, key in ipairs({ ... }) do
      if name ~= 'TIME' and (i == 1 or name == 'MGET' or name == 'DEL' or name == 'UNLINK') and not named[key] then
        return { err = 'ERR script tried accessing undeclared key' }
      end
    end
  end
  return {
    error_reply = real.error_reply,
    pcall = function(...) return check(...) or real.pcall(...) end,
    call = function(...)
      local failed = check(...)
      if failed then
        error(failed, 0)
      end
      return real.call(...)
    end,
  }
end)()`

// declaring has scripts be forbidden the keys that a list in Lua does not name.
func declaring(names string) func(*redisengine.Config) {
	return changing(func(text string) string {
		return "local redis = " + strings.Replace(declared, "ipairs(KEYS)", names, 1) + "\n" + text
	})
}

// TestUndeclaredKeys asks a server that forbids scripts also the keys that are declared: the error says so.
func TestUndeclaredKeys(t *testing.T) {
	limiter := newLimiter(ownRedis(t), declaring("ipairs({})"))
	for name, rule := range storetest.WaysOf(time.Minute, 3) {
		_, err := limiter.Take(t.Context(), rule.Limit(key(caller)))
		wantUnfit(t, name, err)
	}
}

// documentedRights returns the commands that the documentation says the scripts need the right to.
func documentedRights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/running.md")
	ok(t, err)
	_, rest, _ := strings.Cut(string(page), "<!-- commands -->")
	text, _, ok := strings.Cut(rest, "<!-- /commands -->")
	if !ok {
		t.Fatal("docs/running.md does not say which commands the scripts call")
	}
	found := strings.Fields(strings.NewReplacer("```", "", "+", "").Replace(text))
	slices.Sort(found)
	return found
}

// TestScriptCommands wants the documentation to name the commands that the
// scripts call, and no other.
func TestScriptCommands(t *testing.T) {
	t.Parallel()
	same(t, "commands (-the scripts' +docs/running.md's)", storetest.Commands(), documentedRights(t))
}

// TestRenamedCommands takes commands that the scripts call often away from a server: what calls one
// fails for that reason, and says so. Redis says the same of all of them.
func TestRenamedCommands(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"get", "set", "time", "zadd"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--rename-command", command, "")
			store := newStore(server.Client(t), func(cfg *redisengine.Config) { cfg.Timeout = 10 * time.Second })
			failed := 0
			for name, rule := range storetest.WaysOf(time.Hour, 2000) {
				for _, cost := range []int64{1, 1500, 700} {
					_, err := try(store, take, single(rule, name, cost))
					if err == nil {
						continue
					}
					failed++
					if runtime.ClassOf(err) != observe.ErrorClass(decide.ClassNoScript) || !strings.Contains(err.Error(), "renamed") {
						t.Errorf("%s: %v (%v)", name, err, runtime.ClassOf(err))
					}
				}
			}
			if failed == 0 {
				t.Error("nothing has failed")
			}
		})
	}
}
