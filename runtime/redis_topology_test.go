package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// testResharding moves a slot while calls are made to its keys: each is
// answered and charged once.
func testResharding(t *testing.T, cluster *redistest.Cluster, client *redis.ClusterClient) {
	ctx := context.Background()
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "moving", Prefix: "{moving}:", Window: time.Hour, Max: 1000}
	other := &runtime.Rule{Name: "other", Prefix: "{moving}:", Window: time.Hour, Max: 1000, Algorithm: runtime.TokenBucket}
	charged := map[string]int64{}
	take := func(id string, limits ...runtime.Limit) error {
		d, err := limiter.Take(ctx, limits...)
		if err == nil {
			charged[id]++
			if d.Remaining != 1000-charged[id] {
				t.Errorf("%s: %d left after %d calls", id, d.Remaining, charged[id])
			}
		}
		return err
	}
	phase := func(name string) {
		t.Helper()
		for range 10 {
			if err := take("old", rule.Limit(key("old"))); err != nil {
				t.Errorf("%s: old: %v", name, err)
			}
			if err := take(name, rule.Limit(key(name))); err != nil {
				t.Errorf("%s: new: %v", name, err)
			}
		}
	}
	slot := cluster.Slot("{moving}")
	from := cluster.Master(slot)
	to := anotherMaster(t, cluster, from)
	phase("before")
	finish := cluster.StartMove(slot, to)
	phase("half") // ASK for the keys that are new
	// The keys of this call are on both sides now, so that no script can span
	// them. It is decided all the same, and does not wait for the move to end.
	if _, err := limiter.Take(ctx, rule.Limit(key("before")), other.Limit(key("half")), rule.Limit(key("half"))); err != nil {
		t.Errorf("a call with keys on both sides: %v", err)
	}
	finish()
	charged["before"]++
	charged["half"]++
	phase("after") // MOVED

	stop, moved := make(chan struct{}), make(chan int)
	go func() { // and back, under load
		calls := 0
		for {
			select {
			case <-stop:
				moved <- calls
				return
			default:
				if err := take("load", rule.Limit(key("load")).WithMax(1000)); err != nil && !errors.Is(err, runtime.ErrLimited) {
					t.Errorf("call %d: %v", calls, err)
				}
				calls++
			}
		}
	}()
	cluster.MoveSlot(slot, from)
	close(stop)
	t.Logf("%d calls during a move", <-moved)
	for id, n := range charged {
		if d, err := limiter.Peek(ctx, rule.Limit(key(id))); err != nil || d.Remaining != 1000-min(n, 1000) {
			t.Errorf("%s: got %+v, %v, want %d left", id, d, err, 1000-n)
		}
	}
}
