package shadow

import (
	"context"
	"errors"
	"expvar"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

type search struct{}

func (search) Find(context.Context, string, string) ([]string, error) { return nil, nil }

// In the shadow nobody is refused and the counts tell who would be. Overrides
// enforce the limit for one user, and for all, and take that back.
func TestShadow(t *testing.T) {
	server := redistest.Start(t)
	calls := new(expvar.Map)
	var replicas []Search
	for _, limiter := range replica.On(t, server, func(client *redis.Client) []runtime.Option {
		return []runtime.Option{runtime.WithObserver(Count(calls)), runtime.WithOverrides(override.Redis(client, "limits"), 10*time.Millisecond)}
	}) {
		replicas = append(replicas, NewRateLimitedSearch(search{}, limiter))
	}
	refused := func(s Search, user string, calls int) (refused int) {
		for range calls {
			if _, err := s.Find(t.Context(), user, "all"); errors.Is(err, runtime.ErrLimited) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		return refused
	}
	// together has a user make 40 calls, of which so many are refused in earnest.
	together := func(what, user string, want int) {
		t.Helper()
		calls.Init()
		both := replica.All(replicas, func(s Search) int { return refused(s, user, 20) })
		counted := func(verdict string) string {
			if n := calls.Get("search.user." + verdict); n != nil {
				return n.String()
			}
			return "0"
		}
		shadow := "35"
		if want > 0 {
			shadow = "0"
		}
		if both[0]+both[1] != want || counted("admitted") != "5" || counted("shadow_refused") != shadow {
			t.Errorf("%s: %d refused, and counted are %v", what, both[0]+both[1], calls)
		}
	}
	// follow returns when every replica refuses, or no longer refuses, calls.
	follow := func(refuses bool) {
		t.Helper()
		for _, s := range replicas {
			limittest.Eventually(t, "the override is in force", func() bool { return refused(s, "probe", 6) > 0 == refuses })
		}
	}
	client := server.Client(t)
	together("in the shadow", "ann", 0)
	const early = `["search.user", "probe"]`
	client.HSet(t.Context(), "limits", early, `{"mode": "enforce"}`)
	follow(true)
	together("enforced for another", "dan", 0)
	client.HDel(t.Context(), "limits", early)
	follow(false)
	client.HSet(t.Context(), "limits", "search.user", `{"mode": "enforce"}`)
	follow(true)
	together("enforced", "bea", 35)
	client.HDel(t.Context(), "limits", "search.user")
	follow(false)
	together("in the shadow again", "cid", 0)
}
