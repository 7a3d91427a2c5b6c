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
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(50*time.Millisecond, 6) {
		rule.Resolution = min(rule.Resolution, rule.Window)
		charge := func(key string) rawstore.Charge {
			return chargeOf(rule, name+key, 1)
		}
		check := func(do func(context.Context, []rawstore.Call) error) (last rawstore.Charge) {
			calls := []rawstore.Call{
				{Charges: []rawstore.Charge{charge("a")}}, {Charges: []rawstore.Charge{charge("b")}},
				{Charges: []rawstore.Charge{charge("a"), charge("c")}},
			}
			if err := do(t.Context(), calls); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range calls {
				if calls[i].Err != nil {
					t.Fatalf("%s: call %d: %v", name, i, calls[i].Err)
				}
			}
			return calls[0].Charges[0]
		}
		for range 15 { // some leave, and all do
			charged := check(rawstore.On(store).Take)
			check(rawstore.On(store).Peek)
			if err := rawstore.On(store).Settle(t.Context(), []rawstore.Charge{charged}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if rule.Algorithm == runtime.Concurrency {
				calls := []rawstore.Call{{Charges: []rawstore.Charge{charged}}}
				if err := errors.Join(rawstore.On(store).Renew(t.Context(), calls), calls[0].Err); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			time.Sleep(9 * time.Millisecond)
		}
		time.Sleep(60 * time.Millisecond)
		check(rawstore.On(store).Take)
		if err := rawstore.On(store).Reset(t.Context(), []rawstore.Charge{charge("a")}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
