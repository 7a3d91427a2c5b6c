package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
)

// However slow the store is, callers do not wait until 4,096 charges do; nothing is
// lost; and Close waits for all.
func TestSettleLaterQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, gate := newFake(), make(chan struct{})
		var failures, made atomic.Int64
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
			made.Add(int64(len(charges)))
			return store.engine.Settle(ctx, charges)
		}
		limiter := runtime.New(store, quiet, observing(observe.Observer{Failure: func(_ context.Context, ev observe.FailureEvent) {
			if !ev.Settling || ev.Rule != "wide" {
				t.Errorf("got %+v", ev)
			}
			failures.Add(1)
		}}))
		later := func() { limiter.SettleLater(t.Context(), taken(t, limiter, wide.Limit(nil)), 0) }
		later()
		time.Sleep(10 * time.Millisecond) // the goroutine has taken the first
		equal(t, "callers waited", elapsed(func() {
			for range 4095 {
				later()
			}
		}), 0)
		equal(t, "with a full queue the caller waited", elapsed(later), runtime.SettleTimeout)
		close(gate)
		ok(t, limiter.Close())
		// The first of the queue had its time, and so had the last.
		equal(t, "settled", made.Load(), 4095)
		equal(t, "reported as lost", failures.Load(), 2)
		wantLeft(t, limiter, wide.Limit(nil), wide.Max-2)
		later() // at once after Close
		equal(t, "settled after Close", made.Load(), 4096)
	})
}

// Many callers settle on a real Redis at once, also a key's WRONGTYPE among
// them; only what fails is reported.
func TestSettleLaterOnRedis(t *testing.T) {
	client := ownRedis(t)
	var failed sync.Map
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, observing(observe.Observer{
		Failure: func(_ context.Context, ev observe.FailureEvent) { failed.Store(fmt.Sprintf("%+v", ev), true) },
	}))
	good := &runtime.Rule{Name: "good", Window: time.Hour, Max: 1_000_000}
	bad := &runtime.Rule{Name: "bad", Window: time.Hour, Max: 1_000_000}
	concurrently(32, func(c int) {
		for i := range 50 {
			limit := good.Limit(key(fmt.Sprint(i % 7))).WithCost(3)
			if c == 0 {
				limit = bad.Limit(key(fmt.Sprint(i)))
			}
			d := taken(t, limiter, limit)
			if c == 0 {
				client.Set(t.Context(), bridge.LimiterOf(limiter).RedisKey(limit), "not a limit's", 0)
			}
			limiter.SettleLater(t.Context(), d, int64(i%6))
		}
	})
	ok(t, limiter.Close())
	used := map[int]int64{}
	for i := range 50 {
		used[i%7] += 31 * int64(i%6)
	}
	for i, used := range used {
		wantLeft(t, limiter, good.Limit(key(fmt.Sprint(i))), 1_000_000-used)
	}
	events := 0
	failed.Range(func(ev, _ any) bool {
		events++
		equal(t, "event", ev, "{Rule:bad Class:wrongtype Policy:default Settling:true Holding:false Err:WRONGTYPE Operation against a key holding the wrong kind of value}")
		return true
	})
	equal(t, "kinds of events", events, 1)
}
