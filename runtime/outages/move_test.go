package outages

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// testHalfMoved has many callers share batches to one slot of which half of the
// keys have moved: no script can span them. All calls are decided, none beyond a
// key's max, and the breaker stays closed.
func testHalfMoved(t *testing.T, cluster *redistest.Cluster) {
	const callers, keys, max = 64, 200, 40
	for name, tuned := range map[string]bool{"default client": false, "tuned client": true} {
		client := cluster.Client(t, func(o *redis.ClusterOptions) {
			if tuned {
				runtime.TuneRedis(o)
			}
		})
		tag := fmt.Sprintf("{half moved %v}", tuned)
		slot := cluster.Slot(tag)
		from := cluster.Master(slot)
		to := anotherMaster(t, cluster, from)
		var opened atomic.Int64
		store := runtime.NewRedisStore(client, atOnce, patient)
		limiter := runtime.New(store, quiet, observing(observe.Observer{
			Breaker: func(ev observe.BreakerEvent) {
				if ev.Open {
					opened.Add(1)
				}
			},
		}))
		one := &runtime.Rule{Name: "one", Prefix: tag + "one:", Window: time.Hour, Max: max, Storage: runtime.StoragePacked}
		two := &runtime.Rule{Name: "two", Prefix: tag + "two:", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
		var admitted [keys]atomic.Int64
		var calls, undecided atomic.Int64
		take := func(i int) {
			limits := []runtime.Limit{one.Limit(key(fmt.Sprint(i)))}
			if i%10 == 0 { // and calls with keys on both sides
				limits = append(limits, two.Limit(key(fmt.Sprint(i+1))))
			}
			d, err := limiter.Take(t.Context(), limits...)
			calls.Add(1)
			if d.Source != rule.SourceStore {
				undecided.Add(1)
			} else if err == nil {
				admitted[i].Add(1)
			}
		}
		for i := range keys {
			take(i)
		}
		finish := cluster.StartMove(slot, to)
		var moved []string
		for i := 0; i < keys; i += 2 {
			moved = append(moved, fmt.Sprintf("%sone:%d%%packed", tag, i))
		}
		cluster.MoveKeys(from, to, moved...)
		concurrently(callers, func(c int) {
			for n := range 60 {
				take((c*31 + n*7) % keys)
			}
		})
		finish()
		for i := range keys {
			if n := admitted[i].Load(); n > max {
				t.Errorf("%s: key %d: %d admitted, want at most %d", name, i, n, max)
			}
		}
		t.Logf("%s: %d of %d calls were not decided: %v", name, undecided.Load(), calls.Load(), bridge.StoreOf(store).Failures())
		if n := undecided.Load(); n > calls.Load()/1000 || opened.Load() > 0 {
			t.Errorf("%s: %d of %d calls were not decided, the breaker opened %d times", name, n, calls.Load(), opened.Load())
		}
	}
}

// testResetBesideFrozen resets keys while one master does not respond: those on
// the others are reset, at once also when its breaker is open.
func testResetBesideFrozen(t *testing.T, cluster *redistest.Cluster) {
	// The test lasts longer than it takes the others to declare the master
	// dead. Then a cluster answers no key at all until a replica takes over.
	cluster.Configure(t, "cluster-require-full-coverage", "no")
	cluster.Configure(t, "cluster-replica-no-failover", "yes")
	client := cluster.Client(t)
	var mu sync.Mutex
	var opened []string
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Second)), quiet, closed,
		observing(observe.Observer{Breaker: func(ev observe.BreakerEvent) {
			mu.Lock()
			defer mu.Unlock()
			if ev.Open {
				opened = append(opened, ev.Node)
			}
		}}))
	rule := &runtime.Rule{Name: "reset", Window: time.Hour, Max: 1}
	owner := cluster.Owners()
	frozen := owner(0)
	var on [2][]runtime.Limit // others, and on the frozen one
	for i := 0; len(on[0]) < 40 || len(on[1]) < 10; i++ {
		id := fmt.Sprint(i)
		side := 0
		if owner(cluster.Slot("rate_limit:reset:"+id)) == frozen {
			side = 1
		}
		on[side] = append(on[side], rule.Limit(key(id)))
	}
	limiter.Register(rule)
	ok(t, limiter.Warm(t.Context())) // machines are busy
	for _, limit := range on[0] {
		taken(t, limiter, limit)
	}
	// The client of a cluster asks a server at random before its first command, so
	// there are clients enough for some to ask the frozen one.
	fresh := make([]*runtime.Limiter, 30)
	for i := range fresh {
		store := runtime.NewRedisStore(cluster.Client(t), runtime.WithTimeout(time.Second))
		fresh[i] = runtime.New(store, quiet, closed)
		eventually(t, "a fresh client's first answer", func() bool { // machines are busy
			_, err := fresh[i].Take(t.Context(), rule.Limit(key(fmt.Sprint("fresh-", i))).WithMax(1))
			return !errors.Is(err, runtime.ErrUnavailable)
		})
	}
	frozen.Pause()
	defer cluster.WaitReady()
	defer frozen.Resume()
	var wait sync.WaitGroup
	for range 20 { // until its breaker is open
		for _, limit := range on[1] {
			wait.Go(func() {
				if err := limiter.Reset(t.Context(), limit); err == nil {
					t.Error("a frozen master has reset a key")
				}
			})
		}
		wait.Wait()
	}
	again := func(do func() error) (err error) {
		for range 10 { // a busy machine may be late
			if err = do(); err == nil {
				break
			}
		}
		return err
	}
	for _, limit := range on[0] {
		if err := again(func() error {
			if err := limiter.Reset(t.Context(), limit); err != nil {
				return err
			}
			_, err := limiter.Take(t.Context(), limit)
			return err
		}); err != nil {
			t.Errorf("a healthy master: %v", err)
		}
	}
	for i, limiter := range fresh {
		if err := again(func() error { return limiter.Reset(t.Context(), on[0][i]) }); err != nil {
			t.Errorf("a fresh client: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(opened) == 0 || opened[0] != frozen.Addr {
		t.Errorf("breakers opened of %q, want that of %s", opened, frozen.Addr)
	}
}

// anotherMaster returns a master that is not the given one. After a fault it need
// not be one of the masters at the start.
func anotherMaster(t *testing.T, cluster *redistest.Cluster, master *redistest.Server) *redistest.Server {
	t.Helper()
	owner := cluster.Owners()
	for slot := 0; slot < 16384; slot += 512 {
		if other := owner(slot); other != nil && other != master {
			return other
		}
	}
	t.Fatal("there is no other master")
	return nil
}
