package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A fault is something that goes wrong, and how it ends.
type fault struct {
	name       string
	begin, end func()
}

// TestTripsUnderFaults shows that calls which share trips are charged at most
// once and admitted exactly, whatever happens to the server and on the way to
// it, and whoever gives up.
func TestTripsUnderFaults(t *testing.T) {
	t.Parallel()
	for name, punctual := range map[string]bool{"default client": false, "punctual client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A restarted server knows all that it has answered.
			server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			proxy := faultproxy.Start(t, server.Addr)
			client := redis.NewClient(&redis.Options{
				Addr: proxy.Addr, ContextTimeoutEnabled: punctual,
				DialerRetries: 1, ReadTimeout: 200 * time.Millisecond,
			})
			t.Cleanup(func() { _ = client.Close() })
			admin := server.Client(t)
			flush := func() { admin.ScriptFlush(context.Background()) }
			load := newTripLoad(client, "")
			load.run(t, []fault{
				{"nothing", func() {}, func() {}},
				{"script flush", flush, flush},
				{"late", func() { proxy.Delay(20 * time.Millisecond) }, proxy.Pass},
				{"lost replies", proxy.DropReplies, proxy.Pass},
				{"cut replies", proxy.CutReplies, proxy.Pass},
				{"silence", proxy.Stall, proxy.Pass},
				{"reset", proxy.Reset, proxy.Pass},
				{"refusal", proxy.Refuse, proxy.Pass},
				{"freeze", server.Pause, server.Resume},
				{"kill", server.Kill, server.Restart},
				{"flush again", flush, flush},
			})
			load.check(t, runtime.NewRedisStore(admin, patient, atOnce))
		})
	}
}

// testTripsUnderFaults shows the same on a cluster.
func testTripsUnderFaults(t *testing.T, cluster *redistest.Cluster) {
	for name, punctual := range map[string]bool{"default client": false, "punctual client": true} {
		t.Run(name, func(t *testing.T) {
			for attempt := range 3 {
				if load, ok := loadUnderFaults(t, cluster, punctual, attempt); ok {
					load.check(t, runtime.NewRedisStore(cluster.Client(t), patient, atOnce))
					return
				}
			}
			t.Error("a replica has taken the place of each frozen master")
		})
	}
}

// loadUnderFaults loads a cluster while one fault after the other happens. It reports
// false if a replica has taken the place of a frozen master, as it may on a busy machine:
// it has not all writes of the master.
func loadUnderFaults(t *testing.T, cluster *redistest.Cluster, punctual bool, attempt int) (load *tripLoad, ok bool) {
	client := cluster.Client(t, func(o *redis.ClusterOptions) {
		o.ContextTimeoutEnabled, o.DialerRetries, o.ReadTimeout = punctual, 1, 200*time.Millisecond
	})
	masters := cluster.Masters()
	tag := fmt.Sprintf("{faults %v %d}", punctual, attempt)
	load = newTripLoad(client, tag)
	slot := cluster.Slot(tag)
	var owner, other *redistest.Server
	flush := func() {
		_ = client.ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error {
			return node.ScriptFlush(ctx).Err()
		})
	}
	freeze := func() {
		owner = cluster.Master(slot)
		owner.Pause()
	}
	resume := func() { owner.Resume() }
	move := func() {
		cluster.WaitReady()
		owner = cluster.Master(slot)
		other = anotherMaster(t, cluster, owner)
		cluster.MoveSlot(slot, other)
	}
	load.run(t, []fault{
		{"nothing", func() {}, func() {}},
		{"script flush", flush, flush},
		{"freeze", freeze, resume},
		{"move", move, func() {}},
		{"freeze again", freeze, resume},
		{"move on", move, flush},
	})
	return load, slices.Equal(masters, cluster.Masters())
}
