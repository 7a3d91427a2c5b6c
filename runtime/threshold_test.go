package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// thresholds are the events of limiters that share a store.
type thresholds struct {
	recorder[string]
	limiters []*runtime.Limiter
}

// newThresholds returns the events of n replicas.
func newThresholds(n int, replica replicas, opts ...runtime.Option) *thresholds {
	heard := new(thresholds)
	opts = append(opts, observing(runtime.Observer{Threshold: func(_ context.Context, ev runtime.ThresholdEvent) {
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
	return &runtime.Rule{Name: name, Prefix: name + ":", Period: runtime.Year, Anchor: 100*int(time.Now().AddDate(0, 6, 0).Month()) + 1, Max: 100, Algorithm: runtime.FixedWindow}
}

// testThresholds wants each share told once by any number of limiters at any cost, from
// however many calls at a time.
func testThresholds(t *testing.T, replica replicas) {
	for _, limiters := range []int{1, 2, 8} {
		for cost := int64(1); cost <= 101; cost += 1 + cost/3 {
			rule := budget(fmt.Sprintf("%d-%d", limiters, cost))
			switch cost % 3 { // each way in which a period is counted
			case 0:
				rule.Reserve = time.Minute
			case 1:
				rule.Debt = runtime.DebtCarry
			}
			heard := newThresholds(limiters, replica)
			concurrently(8, func(i int) {
				passing(t, heard.limiters[i%limiters], rule.Limit(key("k")).WithCost(cost), int(100/cost/8+2))
			})
			var want []string
			for _, percent := range []int64{80, 100} {
				if cost <= 100 && 100/cost*cost >= percent {
					want = append(want, fmt.Sprintf("%s k %d%% of 100", rule.Name, percent))
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

	// What is refunded and charged again, here and there, is told once.
	refunds := limit("refunds")
	for i := range 6 {
		l := heard.limiters[i%2]
		refunded(t, l, use(l, refunds, 90))
	}
	ok(t, one.Reset(t.Context(), refunds))
	use(other, refunds, 90)

	// What a call was settled at is told by the next one, though it is denied.
	settles := limit("settled")
	settled(t, one, use(one, settles, 1), 500)
	denied(t, other, settles)

	// One below the share says nothing, and neither does a call that is not charged.
	low := limit("low")
	use(one, low, 79)
	denied(t, one, low, narrow.Limit(nil).WithCost(2))

	// A limit in shadow mode has events, too; a block is no use of the budget.
	shadow, blocks := budget("shadow"), budget("blocks")
	shadow.Mode, blocks.Block = runtime.ModeShadow, time.Minute
	use(one, shadow.Limit(key("k")), 85)
	use(one, blocks.Limit(key("k")), 60)
	denied(t, one, blocks.Limit(key("k")).WithCost(60))
	denied(t, one, blocks.Limit(key("k")))

	// Calls that are decided together, and keys that are told apart.
	plain := budget("plain")
	one.TakeEach(t.Context(), plain.Limit(key("a")).WithCost(80), plain.Limit(key("b")).WithCost(79), plain.Limit(key("c:d")).WithCost(80))

	// A rule without a period has no events.
	window := &runtime.Rule{Name: "window", Prefix: "window:", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow}
	use(one, window.Limit(key("k")), 10)

	// Another limit is another budget.
	topped := limit("topped up")
	use(one, topped, 100)
	topUp.set(runtime.Overrides{Rules: map[string]runtime.Override{"topped up": {Max: new(int64(200))}}}, nil)
	eventually(t, "there is more", func() bool {
		usages, err := one.Usage(t.Context(), topped)
		return err == nil && usages[0].Limit == 200
	})
	use(one, topped, 60)

	heard.wants(t,
		"refunds k 80% of 100",
		"settled k 80% of 100", "settled k 100% of 100",
		"shadow k 80% of 100 in shadow mode",
		"plain a 80% of 100", "plain c%3Ad 80% of 100",
		"topped up k 80% of 100", "topped up k 100% of 100", "topped up k 80% of 200")
}

// daily are a rule of a day, the last second of one, and the store's clock at that time.
func daily() (rule *runtime.Rule, last time.Time, clock *atomic.Int64) {
	last, clock = time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC), new(atomic.Int64)
	clock.Store(last.UnixMicro())
	return &runtime.Rule{Name: "r", Period: runtime.Day, Max: 1, Algorithm: runtime.FixedWindow}, last, clock
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

// TestThresholdTooLate wants nothing told of a period that is over, and the next one to have
// its events all the same.
func TestThresholdTooLate(t *testing.T) {
	t.Parallel()
	rule, last, clock := daily()
	store := newFake()
	store.MemoryStore.SetClock(clock.Load)
	store.take = func(ctx context.Context, calls []terms.Call) error {
		if asksForMark(calls) {
			clock.Store(last.Add(time.Minute).UnixMicro())
		}
		return store.MemoryStore.Take(ctx, calls)
	}
	heard := newThresholds(1, sharing(store))
	taken(t, heard.limiters[0], rule.Limit(key("k")))
	eventually(t, "both marks are taken back", func() bool { return store.resets.Load() == 2 })
	taken(t, heard.limiters[0], rule.Limit(key("k")))
	heard.await(t, 2)
	heard.wants(t, "r k 80% of 1", "r k 100% of 1")
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

// TestThresholdAskedAgain wants a share told by a later decision if the store did not say
// whether it was, and a process to ask no more once it knows.
func TestThresholdAskedAgain(t *testing.T) {
	t.Parallel()
	store := newFake()
	var asked atomic.Int64
	store.take = func(ctx context.Context, calls []terms.Call) error {
		if asksForMark(calls) && asked.Add(1) <= 3 {
			return errBroken
		}
		return store.MemoryStore.Take(ctx, calls)
	}
	heard := newThresholds(1, sharing(store))
	limit := budget("again").Limit(key("k")).WithCost(20)
	passing(t, heard.limiters[0], limit, 4)
	eventually(t, "both are told", func() bool {
		passing(t, heard.limiters[0], limit, 1)
		return len(heard.all()) >= 2
	})
	heard.wants(t, "again k 80% of 100", "again k 100% of 100")
}

// asksForMark reports whether a store is asked whether a share was told.
func asksForMark(calls []terms.Call) bool {
	return bytes.Contains(calls[0].Charges[0].Key, []byte(terms.ReportMark))
}
