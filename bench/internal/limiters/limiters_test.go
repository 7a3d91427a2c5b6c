package limiters

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

func start(t *testing.T) Server {
	t.Helper()
	s := redistest.Start(t)
	const connections = 4
	client := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: connections})
	t.Cleanup(func() { _ = client.Close() })
	other, err := NewRueidis(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return Server{Client: client, Rueidis: other, Addr: s.Addr, Connections: connections, Timeout: server.Patience, Keys: 10, Cleanup: t.Cleanup}
}

// TestLimiters wants every limiter to do what the cases need: to admit calls that have room, and as
// many as it should of those that have not.
func TestLimiters(t *testing.T) {
	s := start(t)
	for group, test := range []struct {
		limiters []Limiter
		limits   []Limits
	}{
		{slices.Concat(Rategen(), Budgets(), Peers()), []Limits{Room, HotRoom, Long, Tight, NoRoom}},
		{Leased(), []Limits{HotRoom}},
		{Locals(), []Limits{LocalRoom, ManyRoom, NoRoom}},
	} {
		for _, l := range test.limiters {
			for i, limits := range test.limits {
				if l.Floor || l.OnlyRefuses && limits != NoRoom {
					continue
				}
				t.Run(fmt.Sprint(l.Name, limits), func(t *testing.T) {
					take, err := l.New(s, limits)
					if err != nil {
						t.Fatal(err)
					}
					try(t, take, limits, fmt.Sprintf("key%d-%d", group, i))
				})
			}
		}
	}
}

// TestKeys wants what is written by hand, and shares, to charge one key. Of sets it counts the members:
// those that are no permits, see lua/concurrency.lua, and two tenants and one other, see lua/shares.lua.
func TestKeys(t *testing.T) {
	s := start(t)
	members := map[string]int64{way.byHand(ways[len(ways)-1]): 3, RategenShares: 2 + 1}
	for _, l := range slices.Concat(ByHand(), Divided()) {
		t.Run(l.Name, func(t *testing.T) {
			take, err := l.New(s, Room)
			if err != nil {
				t.Fatal(err)
			}
			s.Client.FlushAll(t.Context())
			callers := []string{"a", "a", "a"}
			if l.Name == RategenShares {
				callers[1] = "b"
			}
			for _, caller := range callers {
				if answer := take(t.Context(), caller); answer != load.Admitted {
					t.Fatalf("answer %d", answer)
				}
			}
			keys, err := s.Client.Keys(t.Context(), "*").Result()
			if err != nil || len(keys) != 1 {
				t.Fatalf("keys %q, %v", keys, err)
			}
			if want := members[l.Name]; want != 0 && s.Client.ZCard(t.Context(), keys[0]).Val() != want {
				t.Errorf("%v, want %d members", s.Client.ZCard(t.Context(), keys[0]), want)
			}
		})
	}
}

func try(t *testing.T, take load.Take, limits Limits, key string) {
	t.Helper()
	const calls = 50
	var answers [load.Failed + 1]int64
	for range calls {
		answers[take(t.Context(), key)]++
	}
	refused := answers[load.Refused] + answers[load.Recalled]
	want := min(calls, limits.Level.Max)
	if answers[load.Admitted] != want || refused != calls-want {
		t.Errorf("%+v: of %d calls %d were admitted and %d refused, want %d admitted", limits, calls, answers[load.Admitted], refused, want)
	}
}
