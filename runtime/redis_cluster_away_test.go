package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestPartOfANodeAway takes calls whose limits are on two nodes, while one of the nodes is
// away and nobody has its place. Once that is known the other node is not asked about them,
// whatever else it decides; and when the node is back both are charged.
func TestPartOfANodeAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := redistest.StartCluster(t)
	cluster.Configure(t, "cluster-require-full-coverage", "no")
	away := cluster.Nodes[0]
	owner := cluster.Owners()
	prefix := func(on bool) string { // of keys on the node that is away, or on another one
		for i := 0; ; i++ {
			if p := fmt.Sprintf("{%d}:", i); (owner(cluster.Slot(p)) == away) == on {
				return p
			}
		}
	}
	gone := &runtime.Rule{Name: "gone", Prefix: prefix(true), Window: time.Hour, Max: 1_000_000}
	here := &runtime.Rule{Name: "here", Prefix: prefix(false), Window: time.Hour, Max: 1_000_000}
	well := cluster.Master(cluster.Slot(here.Prefix)).Client(t)
	limiter := runtime.New(runtime.NewRedisStore(cluster.Client(t), atOnce), quiet, closed)
	both := func() error {
		_, err := limiter.Take(ctx, here.Limit(key("k")), gone.Limit(key("k")))
		return err
	}
	eventually(t, "both are decided", func() bool { return both() == nil })

	away.Pause()
	cluster.Nodes[3].Pause() // its replica
	eventually(t, "the circuit breaker opens", func() bool { return runtime.ClassOf(both()) == runtime.ClassBreakerOpen })
	before := executions(t, well)
	const calls = 400
	late := 0
	for i := range calls {
		if err := both(); err == nil {
			t.Fatal("a call was decided without its node")
		}
		outcomes := limiter.TakeEach(ctx, gone.Limit(key(fmt.Sprint(i))), here.Limit(key(fmt.Sprint(i))))
		if class := runtime.ClassOf(outcomes[1].Err); class == runtime.ClassTimeout || class == runtime.ClassBreakerOpen {
			late++ // a busy machine
		} else if outcomes[0].Err == nil || outcomes[1].Err != nil {
			t.Fatalf("single limits: got %v and %v", outcomes[0].Err, outcomes[1].Err)
		}
	}
	if sent := executions(t, well) - before; sent > calls || sent < calls-late {
		t.Errorf("the node that is well executed %d scripts, want one for each of %d calls of its own, of which %d were late", sent, calls, late)
	}

	away.Resume()
	cluster.Nodes[3].Resume()
	eventually(t, "both are decided", func() bool { return both() == nil })
	left := func() int64 {
		d, err := limiter.Peek(ctx, here.Limit(key("k")))
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining
	}
	was := left()
	if err := both(); err != nil || left() != was-1 {
		t.Errorf("when the node is back: got %v, and %d are left of %d", err, left(), was)
	}
}

// TestNodeWithoutSlots freezes a master until its replica has its place. Nobody asks the
// old one any more, and its circuit breaker closes.
func TestNodeWithoutSlots(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t, func(o *redis.ClusterOptions) { runtime.TuneRedis(o) })
	store := runtime.NewRedisStore(client)
	defer store.Close()
	changes := make(chan runtime.BreakerEvent, 100)
	limiter := runtime.New(store, quiet, observing(runtime.Observer{
		Breaker: func(e runtime.BreakerEvent) { changes <- e },
	}))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1_000_000}
	old := cluster.Nodes[0]
	old.Pause()
	open := map[string]bool{}
	seen := false
	eventually(t, "the circuit breaker closes", func() bool {
		for i := range 100 {
			_, _ = limiter.Take(ctx, rule.Limit(key(fmt.Sprint(i))))
		}
		for len(changes) > 0 {
			e := <-changes
			open[e.Node] = e.Open
			seen = seen || e.Node == old.Addr && e.Open
		}
		for _, open := range open { // a busy machine may open that of another node
			if open {
				return false
			}
		}
		return seen
	})
	old.Resume()
	cluster.WaitReady()
}

// TestReservedShare has one process find no room, since another has reserved it as a part
// of a call, and gives it back. It finds the room within a tenth of a second.
func TestReservedShare(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := redistest.StartCluster(t)
	process := func() *runtime.RedisStore { return runtime.NewRedisStore(cluster.Client(t), patient) }
	one, other := process(), process()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	take := func(store *runtime.RedisStore, id int) rawstore.Charge {
		calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: fmt.Append(nil, "share:", id), Max: 1, Cost: 1}}}}
		must(t, store, take, calls)
		return calls[0].Charges[0]
	}
	least := time.Hour // of several, since a busy machine adds to it
	for id := range 10 {
		reserved := take(one, id)
		if take(other, id).Allowed {
			t.Fatal("there was room")
		}
		if err := rawstore.On(one).Settle(ctx, []rawstore.Charge{reserved}); err != nil { // at 0: given back
			t.Fatal(err)
		}
		given := time.Now()
		for !take(other, id).Allowed {
			if time.Since(given) > 10*time.Second {
				t.Fatal("still denied")
			}
			time.Sleep(time.Millisecond)
		}
		least = min(least, time.Since(given))
	}
	if least > 100*time.Millisecond {
		t.Errorf("denied for %v at least although the limit was whole", least)
	}
}

// startRing returns a client of a ring of three servers.
func startRing(t *testing.T) *redis.Ring {
	t.Helper()
	addrs := map[string]string{}
	for i := range 3 {
		addrs[fmt.Sprint(i)] = redistest.Start(t).Addr
	}
	client := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRing shares trips to each server of a ring, and charges limits on two of
// them all or none.
func TestRing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := startRing(t)
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "ring", Prefix: "ring:", Window: time.Hour, Max: 20, Storage: runtime.StoragePacked}
	other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}

	var admitted [40]atomic.Int64
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			for i := range admitted {
				if _, err := limiter.Take(ctx, rule.Limit(runtime.NewKey().AddInt(int64(i)))); err == nil {
					admitted[i].Add(1)
				}
			}
		})
	}
	wait.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n != 20 {
			t.Errorf("key %d: admitted %d, want 20", i, n)
		}
	}
	for i := range int64(20) {
		id := runtime.NewKey().AddInt(100 + i)
		for n := range 8 {
			if _, err := limiter.Take(ctx, rule.Limit(id), other.Limit(id)); (err == nil) != (n < 5) {
				t.Errorf("both limits of %d, call %d: %v", i, n, err)
			}
		}
		wantLeft(t, limiter, rule.Limit(id), 15)
	}
}

// TestRingPlaces charges every key on the server that the ring has it on,
// whatever else a call or a batch is charged for.
func TestRingPlaces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := startRing(t)
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "one", Prefix: "one:", Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
	other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
	const keys = 30
	var batch []runtime.Limit
	for i := range int64(keys) {
		id := runtime.NewKey().AddInt(i)
		taken(t, limiter, rule.Limit(id), other.Limit(id))
		batch = append(batch, rule.Limit(id))
	}
	for i := range batch { // each way of cutting it may begin with another server
		for _, o := range limiter.TakeEach(ctx, batch[i:min(i+2, keys)]...) {
			if o.Err != nil {
				t.Error(o.Err)
			}
		}
	}
	placed := int64(0)
	if err := client.ForEachShard(ctx, func(ctx context.Context, server *redis.Client) error {
		n, err := server.DBSize(ctx).Result()
		atomic.AddInt64(&placed, n)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if placed != 2*keys {
		t.Errorf("%d keys on all servers, want %d: some are on two", placed, 2*keys)
	}
}
