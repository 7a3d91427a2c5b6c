package documents

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestClusterStore has the scripts read the time of the servers of a cluster.
func TestClusterStore(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client, node := cluster.Client(t), cluster.Nodes[0].Client(t)
	RunSome(t, func(t *testing.T) Subject {
		engine := redis.New(goredis.New(client), &redis.Config{
			Timeout: 20 * time.Second, Beside: time.Minute, // a busy machine is late with limits in shadow mode, too
			Changed: func(string, bool) {}, Stepped: func(string, time.Duration) {}, Undecided: func(error, int) {},
			Panicked: func(value any) { panic(value) },
		})
		return OnServerTime(t, rawstore.New(engine, nil), node)
	})
}
