package runtime_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/observe"
)

// TestPasswordChanges takes a server's password away while it is short of memory. Calls,
// those that share a trip with others too, warming and a survey fail for that reason and no
// other; and nobody takes the memory that cannot be read any more for memory that is free.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.ClientAs(t, "~*", "&*", "+@all")
	var out lines
	var empty recorder[observe.MemoryEvent]
	store := runtime.NewRedisStore(client, patient, runtime.WithMemoryWatch(1e-9, 10*time.Millisecond))
	limiter := runtime.New(store, out.Logger(), closed, observing(observe.Observer{Memory: func(e observe.MemoryEvent) {
		if !e.High || e.Used == 0 {
			empty.add(e)
		}
	}}))
	defer func() { ok(t, errors.Join(limiter.Close(), store.Close())) }()
	rules := []*runtime.Rule{
		{Name: "log", Prefix: "l:", Window: time.Minute, Max: 1e6},
		{Name: "permits", Prefix: "p:", Window: time.Minute, Max: 1e6, Algorithm: runtime.Concurrency},
		{Name: "reserved", Prefix: "r:", Window: time.Minute, Max: 1e6, Algorithm: runtime.FixedWindow, Reserve: time.Minute},
	}
	limiter.Register(rules...)
	taken(t, limiter, rules[0].Limit(key("a")))
	eventually(t, "the memory is short", func() bool { return strings.Contains(out.String(), "short of memory") })

	admin := server.Client(t)
	ok(t, errors.Join(admin.Do(t.Context(), "ACL", "SETUSER", "limiter", "resetpass", ">new").Err(),
		admin.ClientKillByFilter(t.Context(), "USER", "limiter").Err()))
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			for range 20 {
				d, err := limiter.Take(t.Context(), rules[i%len(rules)].Limit(key("a")))
				if err == nil {
					t.Errorf("admitted: %+v", d)
				}
			}
		})
	}
	callers.Wait()
	failures := bridge.StoreOf(store).Failures()
	if failures[observe.ClassAuth] == 0 || failures[observe.ErrorClass(decide.ClassScript)]+failures[observe.ClassOther] > 0 {
		t.Errorf("calls failed with %v", failures)
	}
	for what, err := range map[string]error{"warming": limiter.Warm(t.Context()), "a survey": bridge.StoreOf(store).Survey(t.Context(), bridge.LimiterOf(limiter).KeysOf(rules[0]))} {
		equal(t, what+" fails with", runtime.ClassOf(err), observe.ClassAuth)
	}
	eventually(t, "the memory is unknown", func() bool { return strings.Contains(out.String(), "WRONGPASS") })
	if text := out.String(); strings.Contains(text, "memory again") || len(empty.all()) > 0 {
		t.Errorf("memory that could not be read is free: %v, and the log says\n%s", empty.all(), text)
	}
}
