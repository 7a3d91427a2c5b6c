package runtime_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestCrowdOnFrozenRedis has thousands of calls come together while Redis is
// frozen. The client has its default options and the calls have no deadline:
// each is answered within the store's timeout.
func TestCrowdOnFrozenRedis(t *testing.T) {
	// The race detector follows no more than 8128 goroutines.
	calls := effort.Choose(2000, 5000)
	t.Run("cold pool", func(t *testing.T) {
		server := redistest.Start(t)
		client := server.Client(t)
		server.Pause()
		defer server.Resume()
		crowd(t, client, calls)
	})
	t.Run("warm pool", func(t *testing.T) {
		server := redistest.Start(t)
		client := server.Client(t)
		fillPool(t, client)
		server.Pause()
		defer server.Resume()
		crowd(t, client, calls)
	})
	t.Run("pool in use", func(t *testing.T) {
		server := redistest.Start(t)
		client := server.Client(t, func(o *redis.Options) { o.PoolSize = 1 })
		conn := client.Conn()
		defer conn.Close()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		crowd(t, client, calls)
	})
	t.Run("gone", func(t *testing.T) {
		server := redistest.Start(t)
		client := server.Client(t)
		server.Kill()
		crowd(t, client, calls)
	})
	cluster := redistest.StartCluster(t)
	frozen := func(t *testing.T, client redis.UniversalClient) {
		for _, node := range cluster.Nodes {
			node.Pause()
			defer node.Resume()
		}
		crowd(t, client, calls)
	}
	t.Run("cluster, cold", func(t *testing.T) { frozen(t, cluster.Client(t)) })
	cluster.WaitReady()
	t.Run("cluster", func(t *testing.T) {
		client := cluster.Client(t)
		fillPool(t, client)
		frozen(t, client)
	})
}

func fillPool(t *testing.T, client redis.UniversalClient) {
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "r", Prefix: "warm:", Window: time.Hour, Max: 1_000_000}
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			taken(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))))
		})
	}
	wait.Wait()
}

func crowd(t *testing.T, client redis.UniversalClient, calls int) {
	t.Helper()
	store := runtime.NewRedisStore(client)
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "crowd:", Window: time.Hour, Max: 1_000_000}
	took := make([]time.Duration, calls)
	together := make(chan struct{})
	var ready, wait sync.WaitGroup
	ready.Add(calls)
	for i := range calls {
		wait.Go(func() {
			limit := rule.Limit(runtime.NewKey().AddInt(int64(i % 1000)))
			ready.Done()
			<-together
			start := time.Now()
			d, err := limiter.Take(context.Background(), limit)
			took[i] = time.Since(start)
			if err != nil || d.Source != runtime.SourceFailure {
				t.Errorf("got %+v, %v; want a call that the policy let through", d, err)
			}
		})
	}
	ready.Wait()
	close(together)
	wait.Wait()
	slices.Sort(took)
	t.Logf("%d calls: p50 %v, p99 %v, max %v; %v", calls, took[calls/2], took[calls*99/100], took[calls-1], store.Failures())
	// What go-redis is left alone with takes five seconds.
	if most := 4 * time.Second; took[calls-1] > most {
		t.Errorf("a call took %v, want no more than %v on a slow machine", took[calls-1], most)
	}
}
