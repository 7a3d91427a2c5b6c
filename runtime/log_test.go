package runtime_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// Events of a store reach each limiter on it, but an observer or a logger that
// several limiters share only once.
func TestListeners(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	store := runtime.NewRedisStore(client)
	var out [2]lines
	var seen [2]recorder[observe.BreakerEvent]
	var opts [2][]runtime.Option
	for i := range opts {
		opts[i] = []runtime.Option{out[i].Logger(), observing(observe.Observer{Breaker: seen[i].add})}
	}
	limiters := []*runtime.Limiter{runtime.New(store, opts[0]...), runtime.New(store, opts[1]...), runtime.New(store, opts[0]...)}
	store.TellBreaker("10.0.0.1:6379", true)
	store.TellBreaker("", false)
	for i := range seen {
		same(t, "events", []observe.BreakerEvent{{Open: true, Node: "10.0.0.1:6379"}, {Open: false, Node: ""}}, seen[i].all())
		same(t, "log", `level=WARN msg="rate limit store not responding: circuit breaker open" code=breaker_open server=N
level=INFO msg="rate limit store responding again: circuit breaker closed"
`, regexp.MustCompile(`server=\d+\n`).ReplaceAllString(out[i].String(), "server=N\n"))
	}
	store.TellBreaker("10.0.0.2:6379", true)
	store.TellBreaker("10.0.0.1:6379", false)
	told := regexp.MustCompile(`server=(\d+)\n`).FindAllStringSubmatch(out[0].String(), -1)
	if len(told) != 3 || told[0][1] == told[1][1] || told[0][1] != told[2][1] || strings.Contains(out[0].String(), "10.0.0") {
		t.Errorf("servers are told apart by %q in\n%s", told, out[0].String())
	}
	// A closed limiter hears no more. The other one of the same options does.
	for _, step := range []struct{ close, first, second int }{{0, 5, 5}, {1, 6, 5}, {2, 6, 5}} {
		ok(t, limiters[step.close].Close())
		ok(t, limiters[step.close].Close())
		store.TellBreaker("", true)
		equal(t, fmt.Sprintf("after closing %d: events", step.close), [2]int{len(seen[0].all()), len(seen[1].all())}, [2]int{step.first, step.second})
	}
}

// Limiters come and go while events are reported.
func TestListenersConcurrently(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	store := runtime.NewRedisStore(client)
	store.TellBreaker("", true) // without a limiter
	var seen recorder[observe.BreakerEvent]
	concurrently(8, func(int) {
		for range 200 {
			limiter := runtime.New(store, quiet, observing(observe.Observer{Breaker: seen.add}))
			store.TellBreaker("", true)
			ok(t, limiter.Close())
		}
	})
	before := len(seen.all())
	store.TellBreaker("", true)
	equal(t, "events when all are closed", len(seen.all()), before)
	if before < 1600 {
		t.Errorf("%d events, want one for each limiter at least", before)
	}
}
