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
)

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
		if d, err := limiter.Peek(ctx, rule.Limit(id)); err != nil || d.Remaining != 15 {
			t.Errorf("got %+v, %v, want 15 left", d, err)
		}
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
