package outages

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// TestPartOfANodeAway takes calls whose limits are on two nodes, while one of the nodes is
// away and nobody has its place. Once that is known the other node is not asked about them,
// whatever else it decides; and when the node is back both are charged.
func TestPartOfANodeAway(t *testing.T) {
	t.Parallel()
	fullOnly(t)
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
	bothBy := func(limiter *runtime.Limiter) error {
		_, err := limiter.Take(t.Context(), here.Limit(key("k")), gone.Limit(key("k")))
		return err
	}
	both := func() error { return bothBy(limiter) }
	eventually(t, "both are decided", func() bool { return both() == nil })

	away.Pause()
	cluster.Nodes[3].Pause() // its replica
	eventually(t, "the circuit breaker opens", func() bool { return runtime.ClassOf(both()) == observe.ClassBreakerOpen })
	before := executions(t, well)
	const calls = 400
	late := 0
	for i := range calls {
		if err := both(); err == nil {
			t.Fatal("a call was decided without its node")
		}
		outcomes := limiter.TakeEach(t.Context(), gone.Limit(key(fmt.Sprint(i))), here.Limit(key(fmt.Sprint(i))))
		if class := runtime.ClassOf(outcomes[1].Err); class == observe.ClassTimeout || class == observe.ClassBreakerOpen {
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
	patiently := onRedis(cluster.Client(t), atOnce)
	left := func() int64 {
		d, err := patiently.Peek(t.Context(), here.Limit(key("k")))
		ok(t, err)
		return d.Remaining
	}
	was := left()
	if err := bothBy(patiently); err != nil || left() != was-1 {
		t.Errorf("when the node is back: got %v, and %d are left of %d", err, left(), was)
	}
}

// TestNodeWithoutSlots freezes a master until its replica has its place. Nobody asks the
// old one any more, and its circuit breaker closes.
func TestNodeWithoutSlots(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t, func(o *redis.ClusterOptions) { runtime.TuneRedis(o) })
	store := runtime.NewRedisStore(client)
	defer store.Close()
	changes := make(chan observe.BreakerEvent, 100)
	limiter := runtime.New(store, quiet, observing(observe.Observer{
		Breaker: func(e observe.BreakerEvent) { changes <- e },
	}))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1_000_000}
	old := cluster.Nodes[0]
	old.Pause()
	open := map[string]bool{}
	seen := false
	eventually(t, "the circuit breaker closes", func() bool {
		for i := range 100 {
			_, _ = limiter.Take(t.Context(), rule.Limit(key(fmt.Sprint(i))))
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
