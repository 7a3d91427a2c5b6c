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

// testThresholds wants each share told once by any number of limiters at any cost, from
// however many calls at a time.
func testThresholds(t *testing.T, replica replicas) {
	for _, limiters := range []int{1, 2, 8} {
		for cost := int64(1); cost <= 101; cost += 1 + cost/3 {
			r := budget(fmt.Sprintf("%d-%d", limiters, cost))
			switch cost % 3 { // each way in which a period is counted
			case 0:
				r.Reserve = time.Minute
			case 1:
				r.Debt = rule.DebtCarry
			}
			heard := newThresholds(limiters, replica)
			concurrently(8, func(i int) {
				passing(t, heard.limiters[i%limiters], r.Limit(key("k")).WithCost(cost), int(100/cost/8+2))
			})
			var want []string
			for _, percent := range []int64{80, 100} {
				if cost <= 100 && 100/cost*cost >= percent {
					want = append(want, fmt.Sprintf("%s k %d%% of 100", r.Name, percent))
				}
			}
			heard.wants(t, want...)
		}
	}
}

// testThresholdsInABurst wants all of many keys told that pass both shares at the same time.
func testThresholdsInABurst(t *testing.T, replica replicas) {
	const keys = 1000
	heard := newThresholds(2, replica)
	rules := []*runtime.Rule{budget("burst"), budget("burst of reservations")}
	rules[1].Reserve = time.Hour
	var want []string
	for _, rule := range rules {
		for i := range keys {
			want = append(want, fmt.Sprintf("%s %d 80%% of 100", rule.Name, i), fmt.Sprintf("%s %d 100%% of 100", rule.Name, i))
		}
	}
	concurrently(64, func(i int) {
		for n := i; n < 2*keys; n += 64 {
			limit := rules[n%2].Limit(key(fmt.Sprint(n / 2))).WithCost(100)
			if _, err := heard.limiters[i%2].Take(context.Background(), limit); err != nil {
				t.Error(err)
			}
		}
	})
	heard.wants(t, want...)
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
