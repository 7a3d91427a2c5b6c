package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

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

// TestNarrowServer takes by every algorithm from a server of 32 bits, alone, with several
// limits and together with others. It refuses from the first call on, and nothing is charged.
func TestNarrowServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	on32 := runtime.Change(func(text string) string {
		return strings.ReplaceAll(text, "rawget(_G, 'struct')", struct32)
	})
	for name, rule := range serverRules(time.Minute, 3) {
		rule.Prefix = "narrow:" + name + ":"
		other := &runtime.Rule{Name: "other", Prefix: "narrow:other:" + name + ":", Window: time.Minute, Max: 3}
		limiter := onRedis(client, atOnce, on32)
		for range 5 {
			_, alone := limiter.Take(ctx, rule.Limit(nil))
			_, both := limiter.Take(ctx, rule.Limit(nil), other.Limit(nil))
			_, peeked := limiter.Peek(ctx, rule.Limit(nil))
			for _, err := range []error{alone, both, peeked, limiter.TakeEach(ctx, rule.Limit(nil), other.Limit(nil))[0].Err} {
				if runtime.ClassOf(err) != runtime.ClassUnfit || !strings.Contains(causes(err), "64 bits") {
					t.Fatalf("%s: got %v, of class %v", name, err, runtime.ClassOf(err))
				}
			}
		}
	}
	if keys := client.Keys(ctx, "narrow:*").Val(); len(keys) > 0 {
		t.Errorf("charged: %v", keys)
	}
}

// TestFitServer wants a server to be looked at once, by the first script, and again when
// the store has another client.
func TestFitServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := redistest.Start(t)
	admin := server.Client(t)
	counted := runtime.Change(func(text string) string {
		return strings.Replace(text, "if library and", "redis.call('INCR', 'looked')\n  if library and", 1)
	})
	rules := serverRules(time.Minute, 1000)
	for n := 1; n < 4; n++ {
		limiter := onRedis(server.Client(t), atOnce, counted)
		for range 3 {
			for _, rule := range rules {
				taken(t, limiter, rule.Limit(key("k")))
			}
		}
		if looked, err := admin.Get(ctx, "looked").Int(); err != nil || looked != n {
			t.Errorf("store %d: looked %d times, %v", n, looked, err)
		}
	}
}

// answering is a hook that answers commands in place of the server.
type answering func(name string) error

func (answering) DialHook(next redis.DialHook) redis.DialHook { return next }
func (answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a answering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := a(cmd.Name()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// TestServerWithoutLua asks servers that run no Lua scripts: the error says so.
func TestServerWithoutLua(t *testing.T) {
	t.Parallel()
	without := redistest.Start(t, "--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "")
	for name, answer := range map[string]answering{
		"the commands are unknown": func(string) error { return nil },
		"Valkey built without Lua": func(name string) error {
			switch name {
			case "evalsha":
				return reply("NOSCRIPT No matching script. Please use EVAL.")
			case "eval":
				return reply("ERR Could not find scripting engine 'lua'")
			}
			return nil
		},
	} {
		client := without.Client(t)
		client.AddHook(answer)
		limiter := onRedis(client, atOnce)
		_, err := limiter.Take(t.Context(), (&runtime.Rule{Name: "r", Window: time.Minute, Max: 3}).Limit(key(caller)))
		if runtime.ClassOf(err) != runtime.ClassNoScript || !errors.Is(err, runtime.ErrUnavailable) ||
			!strings.Contains(causes(err), "runs no Lua scripts") || strings.Contains(err.Error(), caller) {
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

// TestDeclaredKeys runs every algorithm on a server that forbids scripts keys that are not
// declared: they use none. Where a server forbids those too that are, the error says so.
func TestDeclaredKeys(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	on := func(names string) runtime.RedisOption {
		return runtime.Change(func(text string) string {
			return "local redis = " + strings.Replace(declared, "ipairs(KEYS)", names, 1) + "\n" + text
		})
	}
	doEverything(t, runtime.NewRedisStore(client, runtime.WithTimeout(20*time.Second), atOnce, on("ipairs(KEYS)")))
	limiter := onRedis(client, atOnce, on("ipairs({})"))
	for name, rule := range serverRules(time.Minute, 3) {
		if _, err := limiter.Take(t.Context(), rule.Limit(key(caller))); runtime.ClassOf(err) != runtime.ClassUnfit {
			t.Errorf("%s: got %v, of class %v", name, err, runtime.ClassOf(err))
		}
	}
}
