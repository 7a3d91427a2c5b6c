package runtime_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/failure"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
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
	client := redistest.Start(t).Client(t)
	on32 := runtime.Change(func(text string) string {
		return strings.ReplaceAll(text, "rawget(_G, 'struct')", struct32)
	})
	for name, rule := range serverRules(time.Minute, 3) {
		rule.Prefix = "narrow:" + name + ":"
		other := &runtime.Rule{Name: "other", Prefix: "narrow:other:" + name + ":", Window: time.Minute, Max: 3}
		limiter := onRedis(client, atOnce, on32)
		for range 5 {
			_, alone := limiter.Take(t.Context(), rule.Limit(nil))
			_, both := limiter.Take(t.Context(), rule.Limit(nil), other.Limit(nil))
			_, peeked := limiter.Peek(t.Context(), rule.Limit(nil))
			for _, err := range []error{alone, both, peeked, limiter.TakeEach(t.Context(), rule.Limit(nil), other.Limit(nil))[0].Err} {
				if runtime.ClassOf(err) != runtime.ErrorClass(failure.Unfit) || !strings.Contains(causes(err), "64 bits") {
					t.Fatalf("%s: got %v, of class %v", name, err, runtime.ClassOf(err))
				}
			}
		}
	}
	if keys := client.Keys(t.Context(), "narrow:*").Val(); len(keys) > 0 {
		t.Errorf("charged: %v", keys)
	}
}

// TestFitServer wants a server to be looked at once, by the first script, and again when
// the store has another client.
func TestFitServer(t *testing.T) {
	t.Parallel()
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
		if looked, err := admin.Get(t.Context(), "looked").Int(); err != nil || looked != n {
			t.Errorf("store %d: looked %d times, %v", n, looked, err)
		}
	}
}

// TestServerWithoutLua asks servers that run no Lua scripts: the error says so.
func TestServerWithoutLua(t *testing.T) {
	t.Parallel()
	without := redistest.Start(t, "--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "")
	for name, answer := range map[string]func(name string) error{
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
		client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
			if err := answer(cmds[0].Name()); err != nil {
				return failing(cmds, err)
			}
			return send()
		}))
		limiter := onRedis(client, atOnce)
		_, err := limiter.Take(t.Context(), (&runtime.Rule{Name: "r", Window: time.Minute, Max: 3}).Limit(key(caller)))
		if runtime.ClassOf(err) != runtime.ErrorClass(failure.NoScript) || !errors.Is(err, runtime.ErrUnavailable) ||
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
		if _, err := limiter.Take(t.Context(), rule.Limit(key(caller))); runtime.ClassOf(err) != runtime.ErrorClass(failure.Unfit) {
			t.Errorf("%s: got %v, of class %v", name, err, runtime.ClassOf(err))
		}
	}
}

// TestForeignValue finds somebody else's values of the right type under its keys, and its
// own that are damaged, alone and in the middle of a run, and wants an error and the values
// as they were.
func TestForeignValue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	rules := serverRules(time.Hour, 5)
	for name, rule := range blockingRules(time.Hour, 5) {
		if rule.Block = time.Second; !stored(rule) || rule.Storage == runtime.StoragePacked {
			rules[name+" with a block"] = rule
		}
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			key := storetest.Prefix(t)
			for _, value := range foreignValues(t, client, key, rule) {
				ok(t, client.Del(ctx, key).Err())
				value()
				before := client.Dump(ctx, key).Val()
				if before == "" {
					t.Fatal("there is no value")
				}
				for _, keys := range [][]string{{key}, {key + "before", key, key + "after"}, {key, key}} {
					calls := make([]rawstore.Call, len(keys))
					for i, key := range keys {
						calls[i].Charges = []rawstore.Charge{chargeOf(rule, key, 1)}
					}
					ok(t, rawstore.On(store).Take(ctx, calls))
					for i, k := range keys {
						if foreign := runtime.ClassOf(calls[i].Err) == runtime.ClassWrongType; foreign != (k == key) || !foreign && calls[i].Err != nil {
							t.Errorf("call %d of %d: got %+v, %v", i, len(calls), calls[i].Charges[0].Result, calls[i].Err)
						}
					}
					client.Del(ctx, key+"before", key+"after")
				}
				for _, max := range []int64{5, 500} {
					if max == 500 && client.Type(ctx, key).Val() == "string" && client.StrLen(ctx, key).Val() == 0 {
						continue // a part of nothing is read as of no key
					}
					for _, do := range []operation{take, peek} {
						calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: max, Cost: 1}}}}
						if ok(t, do(rawstore.On(store), ctx, calls)); runtime.ClassOf(calls[0].Err) != runtime.ClassWrongType {
							t.Errorf("max %d: got %+v, %v", max, calls[0].Charges[0].Result, calls[0].Err)
						}
					}
				}
				if client.Dump(ctx, key).Val() != before {
					t.Errorf("a %s was changed", client.Type(ctx, key).Val())
				}
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
		taken := must(t, runtime.NewRedisStore(client, patient), take, single(rule, key, 1))
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

// TestKeysInRow has a run of calls on keys that have been charged before, some
// of them more than once: what is read of all at once must be each one's own,
// and must not be told again once it has changed.
func TestKeysInRow(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(time.Hour, 50) {
		t.Run(name, func(t *testing.T) {
			prefix := storetest.Prefix(t)
			take := func(cost int64, keys string) (left []int64) {
				calls := make([]rawstore.Call, len(keys))
				for i := range calls {
					calls[i].Charges = []rawstore.Charge{{Rule: rule, Key: []byte(prefix + keys[i:i+1]), Max: 50, Cost: cost}}
				}
				ok(t, rawstore.On(store).Take(t.Context(), calls))
				for i := range calls {
					if calls[i].Err != nil {
						t.Fatal(calls[i].Err)
					}
					left = append(left, calls[i].Charges[0].Remaining)
				}
				return left
			}
			used := map[byte]int64{}
			for _, c := range []struct {
				cost int64
				keys string
			}{{1, "a"}, {2, "b"}, {3, "c"}, {4, "dab"}, {1, "abcadb"}, {1, "ddddd"}, {2, "cabcab"}} {
				for i, left := range take(c.cost, c.keys) {
					used[c.keys[i]] += c.cost
					if want := 50 - used[c.keys[i]]; left != want {
						t.Errorf("%q, call %d: %d left, want %d", c.keys, i, left, want)
					}
				}
			}
		})
	}
}

// rights returns the rights that the documentation says the scripts need, as
// those of ACL SETUSER.
func rights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/running.md")
	ok(t, err)
	_, rest, _ := strings.Cut(string(page), "<!-- commands -->")
	text, _, ok := strings.Cut(rest, "<!-- /commands -->")
	if !ok {
		t.Fatal("docs/running.md does not say which commands the scripts call")
	}
	found := strings.Fields(strings.ReplaceAll(text, "```", ""))
	slices.Sort(found)
	return found
}

// TestScriptCommands wants the documentation to name the commands that the
// scripts call, and no other.
func TestScriptCommands(t *testing.T) {
	t.Parallel()
	var calls []string
	all := uint(lua.Several - 1)
	scripts := lua.Take(all|lua.Several) + lua.Take(all|lua.Settle) + lua.Take(all|lua.Renew) + lua.Take(all|lua.Several|lua.Block) + lua.Take(all|lua.Settle|lua.Block)
	for _, m := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(scripts, -1) {
		calls = append(calls, "+"+strings.ToLower(m[1]))
	}
	slices.Sort(calls)
	if diff := cmp.Diff(slices.Compact(calls), rights(t)); diff != "" {
		t.Errorf("commands (-the scripts' +docs/running.md's):\n%s", diff)
	}
}

// TestScriptRights has a user with no more than the documented rights do
// everything.
func TestScriptRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	args := []any{"ACL", "SETUSER", "limiter", "on", "nopass", "~*", "+hello", "+client", "+ping", "+eval", "+evalsha"}
	for _, right := range rights(t) {
		args = append(args, right)
	}
	ok(t, admin.Do(t.Context(), args...).Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
	t.Cleanup(func() { _ = client.Close() })
	doEverything(t, runtime.NewRedisStore(client, patient, atOnce))
}

// doEverything has a store do all that it can by every algorithm, and nothing may fail.
func doEverything(t *testing.T, store runtime.Store) {
	for name, rule := range serverRules(20*time.Millisecond, 6) {
		rule.Resolution = min(rule.Resolution, rule.Window)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		charge := func(key string) rawstore.Charge { return chargeOf(rule, name+key, 1) }
		all := func(do operation) rawstore.Charge {
			c, err := try(store, do, []rawstore.Call{
				{Charges: []rawstore.Charge{charge("a")}}, {Charges: []rawstore.Charge{charge("b")}},
				{Charges: []rawstore.Charge{charge("a"), charge("c")}},
			})
			must(err)
			return c
		}
		blocking := *rule
		blocking.Block, blocking.Hold = time.Hour, true
		for range 5 { // some leave
			charged := all(take)
			all(peek)
			charged.Settled = 2
			must(rawstore.On(store).Settle(t.Context(), []rawstore.Charge{charged}))
			charged.Settled = 0
			must(rawstore.On(store).Settle(t.Context(), []rawstore.Charge{charged}))
			if rule.Algorithm == runtime.Concurrency || rule.Reserve > 0 {
				_, err := try(store, renew, []rawstore.Call{{Charges: []rawstore.Charge{charged}}})
				must(err)
			} else {
				held := chargeOf(&blocking, name+"held", 9)
				held.Wait = time.Minute
				must(rawstore.On(store).Hold(t.Context(), []rawstore.Charge{held}))
				_, err := try(store, take, single(&blocking, name+"blocked", 4))
				must(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(25 * time.Millisecond) // all do
		all(take)
		must(rawstore.On(store).Reset(t.Context(), []rawstore.Charge{charge("a")}))
	}
}
