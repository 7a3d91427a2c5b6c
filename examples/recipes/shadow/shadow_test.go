package shadow

import (
	"context"
	"errors"
	"expvar"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

type question struct {
	User  string
	Calls int
}

type answer struct {
	Refused                 int
	Admitted, ShadowRefused int64 // what Count has counted, of these calls
	Strange                 string
}

type search struct{}

func (search) Find(context.Context, string, string) ([]string, error) { return nil, nil }

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	calls := new(expvar.Map).Init()
	counted := func(verdict string) int64 {
		n, _ := calls.Get("search.user." + verdict).(*expvar.Int)
		if n == nil {
			return 0
		}
		return n.Value()
	}
	limiter := replica.Limiter(client, runtime.WithObserver(Count(calls)),
		runtime.WithOverrides(override.Redis(client, "limits"), 10*time.Millisecond))
	service := NewRateLimitedSearch(search{}, limiter)
	return func(q question) (a answer) {
		calls.Init()
		for range q.Calls {
			if _, err := service.Find(context.Background(), q.User, "all"); errors.Is(err, runtime.ErrLimited) {
				a.Refused++
			} else if err != nil {
				a.Strange = err.Error()
			}
		}
		a.Admitted, a.ShadowRefused = counted("admitted"), counted("shadow_refused")
		return a
	}, limiter
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// In the shadow nobody is refused and the counts tell who would be. Overrides
// enforce the limit for one user, and for all, and take that back.
func TestShadow(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	processes := replica.Start[question, answer](t, server.Addr, 2)
	together := func(user string) (sum answer) {
		t.Helper()
		for _, a := range replica.All(processes, question{user, 20}) {
			sum.Refused += a.Refused
			sum.Admitted += a.Admitted
			sum.ShadowRefused += a.ShadowRefused
			sum.Strange += a.Strange
		}
		return sum
	}
	// follow returns when every replica refuses, or no longer refuses, calls.
	follow := func(refuses bool) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for _, p := range processes {
			for (p.Ask(question{"probe", 6}).Refused > 0) != refuses {
				if time.Now().After(deadline) {
					t.Fatal("the override does not come into force")
				}
			}
		}
	}
	if got, want := together("ann"), (answer{Admitted: 5, ShadowRefused: 35}); got != want {
		t.Errorf("in the shadow: %+v, want %+v", got, want)
	}
	const early = `["search.user", "probe"]`
	client.HSet(t.Context(), "limits", early, `{"mode": "enforce"}`)
	follow(true)
	if got, want := together("dan"), (answer{Admitted: 5, ShadowRefused: 35}); got != want {
		t.Errorf("enforced for another: %+v, want %+v", got, want)
	}
	client.HDel(t.Context(), "limits", early)
	follow(false)
	client.HSet(t.Context(), "limits", "search.user", `{"mode": "enforce"}`)
	follow(true)
	if got, want := together("bea"), (answer{Admitted: 5, Refused: 35}); got != want {
		t.Errorf("enforced: %+v, want %+v", got, want)
	}
	client.HDel(t.Context(), "limits", "search.user")
	follow(false)
	if got, want := together("cid"), (answer{Admitted: 5, ShadowRefused: 35}); got != want {
		t.Errorf("in the shadow again: %+v, want %+v", got, want)
	}
}
