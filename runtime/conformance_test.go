package runtime_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// century is a time that no test reaches by itself, so that Redis expires
// nothing of a test that sets the clock.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		var clock atomic.Int64
		clock.Store(century.UnixMicro())
		store := runtime.NewMemoryStore()
		store.SetClock(clock.Load)
		return storetest.Subject{
			Store: store, Now: clock.Load, Exact: true,
			Advance: func(d time.Duration) { clock.Add(d.Microseconds()) },
		}
	})
}

func testStoreOnCluster(t *testing.T, cluster *redistest.Cluster) {
	client, node := cluster.Client(t), cluster.Nodes[0].Client(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return storetest.OnServerTime(t, runtime.NewRedisStore(client, patient, runtime.Beside(time.Minute)), node)
	})
}

// A clock of Redis that steps back, as when a replica is promoted whose clock is behind, is
// reported once.
func TestClockStepsBack(t *testing.T) {
	client := ownRedis(t)
	var log lines
	limiter := runtime.New(runtime.NewRedisStore(client, patient, runtime.Change(func(text string) string {
		return strings.Replace(text, "redis.call('TIME')", "{redis.call('GET', 'clock'), '0'}", 1)
	})), log.Logger())
	for i, clock := range []int64{4_000_003_600, 4_000_000_000, 4_000_000_000} {
		ok(t, client.Set(t.Context(), "clock", clock, 0).Err())
		taken(t, limiter, wide.Limit(nil))
		equal(t, fmt.Sprintf("call %d: lines", i), strings.Count(log.String(), "clock of the rate limit store stepped back"), min(i, 1))
	}
}
