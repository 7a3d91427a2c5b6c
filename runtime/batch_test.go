package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// occupy pauses a server, and has as many batches of a store be under way as can be at a
// time, so that all other calls wait until resume is called. The store has a long Linger.
func occupy(t *testing.T, server *redistest.Server, store *runtime.RedisStore, calls func() []rawstore.Call) (resume func()) {
	must(t, store, peek, calls())
	server.Pause()
	var wait sync.WaitGroup
	for flying := range 2 {
		wait.Go(func() { _, _ = try(store, peek, calls()) })
		eventually(t, "a batch is under way", func() bool { return store.InFlight() > flying })
	}
	return func() {
		server.Resume()
		wait.Wait()
	}
}

// TestLongBatch splits a batch that is too long for one trip, in order.
func TestLongBatch(t *testing.T) {
	t.Parallel()
	limiter := onRedis(redistest.Start(t).Client(t))
	limits := slices.Repeat([]runtime.Limit{perHour(700).Limit(key("k"))}, 1000)
	for i, o := range limiter.TakeEach(t.Context(), limits...) {
		if (o.Err == nil) != (i < 700) || i < 700 && o.Remaining != int64(699-i) {
			t.Fatalf("call %d: got %+v", i, o)
		}
	}
}

// TestOrderOfArrival has calls to a few keys, alike and not, to one limit and
// to several, come one after the other while the server is paused. They are
// decided as if each had been made alone.
func TestOrderOfArrival(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t, unhurried)
	for name, r := range serverRules(time.Hour, 12) {
		if isBucket(r) {
			r.Window = rule.MaxWindow // nothing drains meanwhile
		}
		store := runtime.NewRedisStore(client, patient, atOnce, runtime.Linger(time.Hour))
		model := runtime.NewMemoryStore()
		charge := func(id int) rawstore.Charge { return chargeOf(r, r.Prefix+fmt.Sprint(id), 1) }
		var sequence [][]rawstore.Call
		random := seed.New(t)
		for range 60 { // which fit in one trip
			charges := []rawstore.Charge{charge(random.IntN(3))}
			switch random.IntN(5) {
			case 0:
				charges[0].Cost = 2
			case 1:
				charges = append(charges, charge(3+random.IntN(2)))
			case 2:
				charges[0].Max = 10
			}
			sequence = append(sequence, []rawstore.Call{{Charges: charges}})
		}
		resume := occupy(t, server, store, func() []rawstore.Call { return []rawstore.Call{{Charges: []rawstore.Charge{charge(9)}}} })
		var wait sync.WaitGroup
		for i, calls := range sequence {
			wait.Go(func() { must(t, store, take, calls) })
			eventually(t, "a call waits", func() bool { return store.Waiting() == i+1 })
		}
		resume()
		wait.Wait()
		for i, calls := range sequence {
			alone := []rawstore.Call{{Charges: slices.Clone(calls[0].Charges)}}
			must(t, model, take, alone)
			for j, want := range alone[0].Charges {
				if got := calls[0].Charges[j]; got.Allowed != want.Allowed || got.Remaining != want.Remaining {
					t.Errorf("%s: call %d %q at cost %d: got %t with %d left, want %t with %d", name, i,
						got.Key, got.Cost, got.Allowed, got.Remaining, want.Allowed, want.Remaining)
				}
			}
		}
	}
}

// TestBatchWaitsOnce spends the time of one call on a batch for many trips when
// Redis gives no answer.
func TestBatchWaitsOnce(t *testing.T) {
	t.Parallel()
	const calls = 1000
	var limits []runtime.Limit
	for i := range int64(calls) {
		limits = append(limits, narrow.Limit(runtime.NewKey().AddInt(i)))
	}
	server := redistest.Start(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = cluster.Close() })
	server.Pause()
	t.Cleanup(server.Resume)
	for name, client := range map[string]redis.UniversalClient{"one server": server.Client(t), "slots": cluster} {
		store := runtime.NewRedisStore(client, runtime.WithTimeout(100*time.Millisecond))
		for _, o := range runtime.New(store, quiet, closed).TakeEach(t.Context(), limits...) {
			wantError(t, name, o.Err, runtime.ErrUnavailable)
		}
		same(t, name+": why calls were not decided", map[observe.ErrorClass]int64{observe.ClassTimeout: calls}, bridge.StoreOf(store).Failures())
	}
}

// TestBatchOfOneWhoLeft sends no more of a batch when its caller has gone, but for a script that was on its way. It
// would be eight.
func TestBatchOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: redistest.Start(t).Addr}))
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	count, gone := counting(client), make(chan struct{})
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		if ctx.Err() != nil {
			<-gone
		} else if cmds[0].Name() == "evalsha" {
			defer cancel()
		}
		return send()
	}))
	limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
	limiter.TakeEach(ctx, slices.Repeat([]runtime.Limit{perHour(2000).Limit(nil)}, 1000)...)
	close(gone)
	_ = limiter.Close()
	if n := len(slices.DeleteFunc(count.sent(), func(name string) bool { return name != "evalsha" })); n > 2 {
		t.Errorf("%d scripts were sent", n)
	}
}

// TestForbiddenKey has callers share trips of whom a few name keys that Redis
// forbids the client's user: they alone fail, and all others are charged once.
func TestForbiddenKey(t *testing.T) {
	t.Parallel()
	const callers, keys, most = 60, 20, 2
	server := redistest.Start(t)
	client := server.ClientAs(t, "~free:*", "+@all")
	store := runtime.NewRedisStore(client, patient, atOnce, runtime.Linger(time.Hour))
	rule := perHour(most)
	resume := occupy(t, server, store, func() []rawstore.Call { return single(rule, "free:", 1) })
	count := counting(client)
	var admitted [keys]atomic.Int64
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			if must(t, store, take, single(rule, fmt.Sprint("free:", i%keys), 1)).Allowed {
				admitted[i%keys].Add(1)
			}
		})
		if i%10 == 0 {
			wait.Go(func() {
				if _, err := try(store, take, single(rule, fmt.Sprint("forbidden:", i), 1)); runtime.ClassOf(err) != observe.ClassAuth {
					t.Errorf("call on a forbidden key: %v", err)
				}
			})
		}
	}
	eventually(t, "all wait", func() bool { return store.Waiting() == callers+callers/10 })
	resume()
	wait.Wait()
	if n := count.scripts(); n >= callers {
		t.Errorf("%d scripts were sent: the callers shared no trips", n)
	}
	for i := range admitted {
		equal(t, fmt.Sprintf("key %d: admitted", i), admitted[i].Load(), most)
	}
}
