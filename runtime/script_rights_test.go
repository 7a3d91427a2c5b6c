package runtime_test

import (
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
	"github.com/rategen/rategen/runtime/rawstore"
)

// rights returns the rights that the documentation says the scripts need, as
// those of ACL SETUSER.
func rights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
	t.Cleanup(func() { _ = client.Close() })
	doEverything(t, runtime.NewRedisStore(client, patient, atOnce))
}

// doEverything has a store do all that it can by every algorithm, and nothing may fail.
func doEverything(t *testing.T, store runtime.Store) {
	for name, rule := range serverRules(50*time.Millisecond, 6) {
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
		for range 8 { // some leave
			charged := all(take)
			all(peek)
			charged.Settled = 2
			must(rawstore.On(store).Settle(t.Context(), []rawstore.Charge{charged}))
			charged.Settled = 0
			must(rawstore.On(store).Settle(t.Context(), []rawstore.Charge{charged}))
			if rule.Algorithm == runtime.Concurrency {
				_, err := try(store, renew, []rawstore.Call{{Charges: []rawstore.Charge{charged}}})
				must(err)
			} else {
				held := chargeOf(&blocking, name+"held", 9)
				held.Wait = time.Minute
				must(rawstore.On(store).Hold(t.Context(), []rawstore.Charge{held}))
				_, err := try(store, take, single(&blocking, name+"blocked", 4))
				must(err)
			}
			time.Sleep(9 * time.Millisecond)
		}
		time.Sleep(60 * time.Millisecond) // all do
		all(take)
		must(rawstore.On(store).Reset(t.Context(), []rawstore.Charge{charge("a")}))
	}
}
