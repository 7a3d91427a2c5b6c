package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// remembering returns a limiter that trusts refusals for a time, and fails open.
func remembering(client redis.UniversalClient, trust time.Duration, opts ...runtime.RedisOption) *runtime.Limiter {
	return runtime.New(runtime.NewRedisStore(client, append([]runtime.RedisOption{patient, runtime.WithRefusalMemory(trust)}, opts...)...), quiet)
}

// TestRefusalsOfEach has Redis fail for a call of its own, or for all.
func TestRefusalsOfEach(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		server := redistest.Start(t)
		testRefusalsOfEach(t, server.Client(t), 300, server.Kill)
	})
	t.Run("another's value", func(t *testing.T) {
		client := redistest.Start(t).Client(t)
		testRefusalsOfEach(t, client, 3, func() {
			for i := range 3 {
				ok(t, client.Set(t.Context(), fmt.Sprint("each:", i), "x", 0).Err())
			}
		})
	})
}

// testRefusalsOfEach has callers who are over their limits come several at a time while Redis
// fails for the first of them: as one by one, they are let through no sooner for it.
func testRefusalsOfEach(t *testing.T, client redis.UniversalClient, failing int, fail func()) {
	const callers, trust = 300, 500 * time.Millisecond // more than a batch takes
	limits := make([]runtime.Limit, callers)
	for i := range limits {
		limits[i] = (&runtime.Rule{Name: "r", Prefix: "each:", Window: time.Hour, Max: 1}).Limit(runtime.NewKey().AddInt(int64(i)))
	}
	limiter := remembering(client, trust, runtime.WithTimeout(200*time.Millisecond))
	admitted := func(o runtime.Outcome) bool { return !errors.Is(o.Err, runtime.ErrLimited) }
	eventually(t, "Redis refuses all callers", func() bool { // on a busy machine a call may find no answer in time
		return !slices.ContainsFunc(limiter.TakeEach(t.Context(), limits...), admitted)
	})
	time.Sleep(trust)
	fail()
	for round := range 3 {
		for i, o := range limiter.TakeEach(t.Context(), limits[:failing]...) {
			if !errors.Is(o.Err, runtime.ErrLimited) || o.Source != rule.SourceRecalled {
				t.Fatalf("round %d, caller %d: got %+v, %v", round, i, o.Decision, o.Err)
			}
		}
		refused(t, limiter, limits[round])
	}
}

// TestRefusalOvertakes has calls on a key wait while others on it are under way, and wants them
// to be refused by what these are told: without a trip, unless they cost less.
func TestRefusalOvertakes(t *testing.T) {
	t.Parallel()
	const crowd = 60
	server := redistest.Start(t)
	client := server.Client(t, unhurried)
	count := counting(client)
	store := runtime.NewRedisStore(client, patient, runtime.WithRefusalMemory(time.Hour), runtime.Linger(time.Hour))
	limiter, limit := runtime.New(store, quiet), perHour(10).Limit(nil)
	taken(t, limiter, limit.WithCost(8))
	count.sent()

	var wait sync.WaitGroup
	var asked, recalled, admitted atomic.Int64
	take := func(cost int64) {
		wait.Go(func() {
			d, err := limiter.Take(t.Context(), limit.WithCost(cost))
			switch {
			case err == nil:
				admitted.Add(1)
			case !errors.Is(err, runtime.ErrLimited):
				t.Errorf("got %+v, %v", d, err)
			case d.Source == rule.SourceRecalled:
				recalled.Add(1)
			default:
				asked.Add(1)
			}
		})
	}
	server.Pause()
	for flying := range 2 { // as many batches as can be under way
		take(5)
		eventually(t, "a batch is under way", func() bool { return store.InFlight() > flying })
	}
	for range crowd {
		take(5)
	}
	take(1)
	eventually(t, "all others wait", func() bool { return store.Waiting() == crowd+1 })
	server.Resume()
	wait.Wait()
	if asked.Load() > 2 || asked.Load()+recalled.Load() != crowd+2 || admitted.Load() != 1 {
		t.Errorf("%d asked, %d refused from memory, %d admitted; want at most 2, %d in all, and 1", asked.Load(), recalled.Load(), admitted.Load(), crowd+2)
	}
	if trips := count.scripts(); trips > 3 {
		t.Errorf("%d trips, want at most 3", trips)
	}
}
