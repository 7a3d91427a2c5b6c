package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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

// testThresholdStory goes through what else may take a key over a share, and below it.
func testThresholdStory(t *testing.T, replica replicas) {
	topUp := new(board)
	heard := newThresholds(2, replica, runtime.WithOverrides(topUp, 10*time.Millisecond))
	one, other := heard.limiters[0], heard.limiters[1]
	limit := func(name string) runtime.Limit { return budget(name).Limit(key("k")) }
	use := func(l *runtime.Limiter, limit runtime.Limit, cost int64) runtime.Decision {
		t.Helper()
		return taken(t, l, limit.WithCost(cost))
	}

	// What is refunded and charged again, here and there, is told once. A reset begins anew.
	refunds := limit("refunds")
	for i := range 6 {
		l := heard.limiters[i%2]
		refunded(t, l, use(l, refunds, 90))
	}
	ok(t, one.Reset(t.Context(), refunds))
	use(other, refunds, 90)

	// What a call was settled at is told at once, in parts or at both shares.
	for name, r := range map[string]*runtime.Rule{"settled": budget("settled"), "reserved": budget("reserved"), "carried": budget("carried")} {
		switch name {
		case "reserved":
			r.Reserve = time.Minute
		case "carried":
			r.Debt = rule.DebtCarry
		}
		all, parts := r.Limit(key("all")), r.Limit(key("parts"))
		settled(t, one, use(one, all, 1), 500)
		settled(t, one, use(one, parts, 70), 79)
		d := use(one, parts, 1)
		settled(t, other, use(other, parts, 1), 10)
		settled(t, one, d, 20)
		refused(t, other, all)
		refused(t, one, parts)
	}

	// One below the share says nothing, and neither does a call that is not charged.
	low := limit("low")
	use(one, low, 79)
	refused(t, one, low, narrow.Limit(nil).WithCost(2))

	// A limit in shadow mode has events, too; a block is no use of the budget.
	shadow, blocks := budget("shadow"), budget("blocks")
	shadow.Mode, blocks.Block = runtime.ModeShadow, time.Minute
	use(one, shadow.Limit(key("k")), 85)
	use(one, blocks.Limit(key("k")), 60)
	refused(t, one, blocks.Limit(key("k")).WithCost(60))
	refused(t, one, blocks.Limit(key("k")))

	// Calls that are decided together, keys that are told apart, one key that comes again, and
	// limits of one call.
	plain := budget("plain")
	one.TakeEach(t.Context(), plain.Limit(key("a")).WithCost(80), plain.Limit(key("b")).WithCost(79), plain.Limit(key("c:d")).WithCost(80))
	one.TakeEach(t.Context(), plain.Limit(key("e")).WithCost(60), plain.Limit(key("e")).WithCost(30), plain.Limit(key("e")).WithCost(10))
	both := budget("both")
	both.Keep = 2
	taken(t, one, narrow.Limit(key("f")), both.Limit(key("f")).WithCost(80), plain.Limit(key("f")).WithCost(100))

	// A rule without a period has no events.
	window := &runtime.Rule{Name: "window", Prefix: "window:", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow}
	use(one, window.Limit(key("k")), 10)

	// Another limit is another budget.
	topped := limit("topped up")
	use(one, topped, 100)
	topUp.set(runtime.Overrides{Rules: map[string]rule.Override{"topped up": {Max: new(int64(200))}}}, nil)
	eventually(t, "there is more", func() bool {
		usages, err := one.Usage(t.Context(), topped)
		return err == nil && usages[0].Limit == 200
	})
	use(one, topped, 60)

	heard.wants(t,
		"refunds k 80% of 100", "refunds k 80% of 100",
		"settled all 80% of 100", "settled all 100% of 100", "settled parts 80% of 100", "settled parts 100% of 100",
		"reserved all 80% of 100", "reserved all 100% of 100", "reserved parts 80% of 100", "reserved parts 100% of 100",
		"carried all 80% of 100", "carried all 100% of 100", "carried parts 80% of 100", "carried parts 100% of 100",
		"shadow k 80% of 100 in shadow mode",
		"plain a 80% of 100", "plain c%3Ad 80% of 100", "plain e 80% of 100", "plain e 100% of 100",
		"both f 80% of 100", "plain f 80% of 100", "plain f 100% of 100",
		"topped up k 80% of 100", "topped up k 100% of 100", "topped up k 80% of 200")
}

// daily are a rule of a day, the last second of one, and the store's clock at that time.
func daily() (r *runtime.Rule, last time.Time, clock *atomic.Int64) {
	last, clock = time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC), new(atomic.Int64)
	clock.Store(last.UnixMicro())
	return &runtime.Rule{Name: "r", Period: rule.Day, Max: 1, Algorithm: runtime.FixedWindow}, last, clock
}

// TestThresholdsOfEachPeriod wants events anew in each period, by the clock of the store.
func TestThresholdsOfEachPeriod(t *testing.T) {
	t.Parallel()
	rule, last, clock := daily()
	store := runtime.NewMemoryStore()
	store.SetClock(clock.Load)
	heard := newThresholds(2, sharing(store))
	var want []string
	for day := range 5 {
		clock.Store(last.AddDate(0, 0, day).UnixMicro())
		for i := range 6 {
			_, _ = heard.limiters[i%2].Take(context.Background(), rule.Limit(key("k")))
		}
		want = append(want, "r k 80% of 1", "r k 100% of 1")
		heard.await(t, len(want))
	}
	heard.wants(t, want...)
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

// testThresholdsOfChangedAnchors wants a share told once in a period that is counted, whichever
// anchors and zones calls have meanwhile, and again in the next one.
func testThresholdsOfChangedAnchors(t *testing.T, replica replicas) {
	heard := newThresholds(2, replica)
	rule := budget("anchors")
	limit := func(i int) runtime.Limit {
		return rule.Limit(key("k")).WithPeriod([]string{"UTC", "Asia/Tokyo", "America/Lima"}[i%3], int64(rule.Anchor+i%7))
	}
	for i := range 20 {
		taken(t, heard.limiters[i%2], limit(i).WithCost(5))
	}
	refused(t, heard.limiters[0], limit(1))
	heard.wants(t, "anchors k 80% of 100", "anchors k 100% of 100")
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
