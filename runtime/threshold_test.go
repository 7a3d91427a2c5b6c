package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// thresholds are the events of limiters that share a store.
type thresholds struct {
	recorder[string]
	limiters []*runtime.Limiter
}

// newThresholds returns the events of n replicas.
func newThresholds(n int, replica replicas, opts ...runtime.Option) *thresholds {
	heard := new(thresholds)
	opts = append(opts, observing(observe.Observer{Threshold: func(ev observe.ThresholdEvent) {
		if ev.Used*100 < int64(ev.Percent)*ev.Limit || ev.ResetAfter <= 0 {
			heard.add(fmt.Sprintf("wrong: %+v", ev))
		}
		text := fmt.Sprintf("%s %s %d%% of %d", ev.Rule, ev.Key, ev.Percent, ev.Limit)
		if ev.Shadow {
			text += " in shadow mode"
		}
		heard.add(text)
	}}))
	for range n {
		heard.limiters = append(heard.limiters, replica(opts...))
	}
	return heard
}

// await returns when there are n events.
func (h *thresholds) await(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " events have come"), func() bool { return len(h.all()) >= n })
}

// wants ends the limiters, and wants these events, in any order.
func (h *thresholds) wants(t *testing.T, want ...string) {
	t.Helper()
	for _, l := range h.limiters {
		ok(t, l.Close())
	}
	same(t, "events", slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(h.all())))
}

// budget is a rule of a period that does not end during a test.
func budget(name string) *runtime.Rule {
	return &runtime.Rule{Name: name, Prefix: name + ":", Period: rule.Year, Anchor: 100*int(time.Now().AddDate(0, 6, 0).Month()) + 1, Max: 100, Algorithm: runtime.FixedWindow}
}

// TestThresholdsOfLateAnswers wants shares told of a charge whose caller has given up.
func TestThresholdsOfLateAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	slow := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	heard := newThresholds(1, sharing(runtime.NewRedisStore(slow, patient)), closed)
	rule := budget("late")
	passing(t, heard.limiters[0], rule.Limit(key("warm")), 1)
	proxy.Delay(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := heard.limiters[0].Take(ctx, rule.Limit(key("k")).WithCost(100)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the caller to give up", err)
	}
	heard.await(t, 2)
	heard.wants(t, "late k 80% of 100", "late k 100% of 100")
}

// testThresholdsLeased wants a share told once where processes decide by leases.
func testThresholdsLeased(t *testing.T, replica replicas) {
	heard := newThresholds(2, replica)
	rule := budget("leased")
	rule.Max, rule.Lease = 20_000, time.Second
	concurrently(8, func(i int) {
		for {
			if _, err := heard.limiters[i%2].Take(context.Background(), rule.Limit(key("k"))); err != nil {
				return
			}
		}
	})
	heard.wants(t, "leased k 80% of 20000", "leased k 100% of 20000")
}
