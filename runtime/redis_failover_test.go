package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestClusterMasterDies kills a master of a cluster, has another hand over, and
// freezes a third: the replica that takes the place decides soon after. A
// client with its default options would by itself ask a dead node for a minute,
// and might ask a frozen one for ten seconds who serves what; so that comes last.
func TestClusterMasterDies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	tests := []struct {
		name   string
		stop   func(master, replica *redistest.Server)
		change func(*redis.ClusterOptions)
	}{
		{"killed", func(master, _ *redistest.Server) { master.Kill() }, func(*redis.ClusterOptions) {}},
		{"handed over", func(_, replica *redistest.Server) {
			client := redis.NewClient(&redis.Options{Addr: replica.Addr})
			defer client.Close()
			if err := client.ClusterFailover(ctx).Err(); err != nil {
				t.Error(err)
			}
		}, func(*redis.ClusterOptions) {}},
		{"frozen", func(master, _ *redistest.Server) { master.Pause() }, func(o *redis.ClusterOptions) { runtime.TuneRedis(o) }},
	}
	for i, test := range tests {
		if !effort.Full() && test.name == "killed" {
			continue // TestFaults has that
		}
		limiter := runtime.New(runtime.NewRedisStore(cluster.Client(t, test.change)), quiet)
		rule := &runtime.Rule{Name: "r", Prefix: tagOf(t, cluster, i), Window: time.Hour, Max: 1_000_000}
		take := func() runtime.Decision {
			t.Helper()
			d := taken(t, limiter, rule.Limit(nil))
			return d
		}
		for take().Source != runtime.SourceStore { // the client is new
			time.Sleep(time.Millisecond)
		}
		test.stop(cluster.Nodes[i], cluster.Nodes[i+3])
		start, last := time.Now(), time.Now()
		promoted := make(chan time.Duration, 1)
		go func() {
			client := redis.NewClient(&redis.Options{Addr: cluster.Nodes[i+3].Addr})
			defer client.Close()
			for !strings.Contains(client.Info(ctx, "replication").Val(), "role:master") && time.Since(start) < 30*time.Second {
				time.Sleep(5 * time.Millisecond)
			}
			promoted <- time.Since(start)
		}()
		undecided := 0
		for time.Since(start) < 20*time.Second {
			if d := take(); d.Source != runtime.SourceStore {
				undecided++
				last = time.Now()
			} else if time.Since(last) > time.Second {
				break // it stays so
			}
			time.Sleep(time.Millisecond)
		}
		away, takeover := last.Sub(start), <-promoted
		t.Logf("%s: the replica takes over after %v; %d calls not decided, the last after %v", test.name, takeover, undecided, away)
		if away-takeover > 5*time.Second {
			t.Errorf("%s: calls are not decided %v after the replica has taken over", test.name, away-takeover)
		}
	}
}

// tagOf returns the hash tag of a slot that the i-th node serves at the start.
func tagOf(t *testing.T, cluster *redistest.Cluster, i int) string {
	for _, tag := range []string{"{a}", "{b}", "{c}", "{d}", "{e}", "{f}", "{g}", "{h}", "{i}"} {
		if cluster.Slot(tag)*3/16384 == i {
			return tag
		}
	}
	t.Fatal("no tag has such a slot")
	return ""
}
