package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// thresholds are the events of limiters that share a store.
type thresholds struct {
	mu       sync.Mutex
	events   []string
	limiters []*runtime.Limiter
}

// newThresholds returns the events of n replicas.
func newThresholds(n int, replica replicas, opts ...runtime.Option) *thresholds {
	told := &thresholds{}
	o := &runtime.Observer{Threshold: func(_ context.Context, ev runtime.ThresholdEvent) {
		told.mu.Lock()
		defer told.mu.Unlock()
		if ev.Used*100 < int64(ev.Percent)*ev.Limit || ev.ResetAfter <= 0 {
			told.events = append(told.events, fmt.Sprintf("wrong: %+v", ev))
		}
		text := fmt.Sprintf("%s %s %d%% of %d", ev.Rule, ev.Key, ev.Percent, ev.Limit)
		if ev.Shadow {
			text += " in shadow mode"
		}
		told.events = append(told.events, text)
	}}
	for range n {
		told.limiters = append(told.limiters, replica(append(opts, runtime.WithObserver(o))...))
	}
	return told
}

// await returns when there are n events.
func (told *thresholds) await(n int) {
	for told.count() < n {
		time.Sleep(time.Millisecond)
	}
}

func (told *thresholds) count() int {
	told.mu.Lock()
	defer told.mu.Unlock()
	return len(told.events)
}

// wants ends the limiters, and wants these events, in any order.
func (told *thresholds) wants(t *testing.T, want ...string) {
	t.Helper()
	for _, l := range told.limiters {
		ok(t, l.Close())
	}
	slices.Sort(told.events)
	slices.Sort(want)
	same(t, "events", want, told.events)
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
			told := newThresholds(limiters, replica)
			concurrently(8, func(i int) {
				for range 100/cost/8 + 2 {
					_, err := told.limiters[i%limiters].Take(context.Background(), rule.Limit(key("k")).WithCost(cost))
					if err != nil && !errors.Is(err, runtime.ErrLimited) {
						t.Error(err)
					}
				}
			})
			var want []string
			for _, percent := range []int64{80, 100} {
				if cost <= 100 && 100/cost*cost >= percent {
					want = append(want, fmt.Sprintf("%s k %d%% of 100", rule.Name, percent))
				}
			}
			told.wants(t, want...)
		}
	}
}

// testThresholdStory goes through what else may take a key over a share, and below it.
func testThresholdStory(t *testing.T, replica replicas) {
	var raised atomic.Bool
	told := newThresholds(2, replica, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		if !raised.Load() {
			return runtime.Overrides{}, nil
		}
		return runtime.Overrides{Rules: map[string]runtime.Override{"topped up": {Max: new(int64(200))}}}, nil
	}), 10*time.Millisecond))
	one, other := told.limiters[0], told.limiters[1]
	take := func(l *runtime.Limiter, limits ...runtime.Limit) runtime.Decision {
		t.Helper()
		d, err := l.Take(t.Context(), limits...)
		if err != nil && !errors.Is(err, runtime.ErrLimited) {
			t.Fatal(err)
		}
		return d
	}

	// What is refunded and charged again, here and there, is told once.
	refunds := budget("refunds").Limit(key("k")).WithCost(90)
	for i := range 6 {
		l := told.limiters[i%2]
		ok(t, l.Refund(t.Context(), take(l, refunds)))
	}
	ok(t, one.Reset(t.Context(), refunds))
	take(other, refunds)

	// What a call was settled at is told by the next one, though it is denied.
	settled := budget("settled").Limit(key("k"))
	ok(t, one.Settle(t.Context(), take(one, settled), 500))
	take(other, settled)

	// One below the share says nothing, and neither does a call that is not charged.
	low := budget("low").Limit(key("k"))
	take(one, low.WithCost(79))
	take(one, low, narrow.Limit(nil).WithCost(2))

	// A limit in shadow mode has events, too; a block is no use of the budget.
	shadow, blocks, plain := budget("shadow"), budget("blocks"), budget("plain")
	shadow.Mode, blocks.Block = runtime.ModeShadow, time.Minute
	take(one, shadow.Limit(key("k")).WithCost(85))
	take(one, blocks.Limit(key("k")).WithCost(60))
	take(one, blocks.Limit(key("k")).WithCost(60))
	take(one, blocks.Limit(key("k")))

	// Calls that are decided together, and keys that are told apart.
	one.TakeEach(t.Context(), plain.Limit(key("a")).WithCost(80), plain.Limit(key("b")).WithCost(79), plain.Limit(key("c:d")).WithCost(80))

	// A rule without a period has no events.
	window := &runtime.Rule{Name: "window", Prefix: "window:", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow}
	take(one, window.Limit(key("k")).WithCost(10))

	// Another limit is another budget.
	topped := budget("topped up").Limit(key("k"))
	take(one, topped.WithCost(100))
	raised.Store(true)
	for take(one, topped.WithCost(0)); ; time.Sleep(time.Millisecond) {
		if usages, err := one.Usage(t.Context(), topped); err == nil && usages[0].Limit == 200 {
			break
		}
	}
	take(one, topped.WithCost(60))

	told.wants(t,
		"refunds k 80% of 100",
		"settled k 80% of 100", "settled k 100% of 100",
		"shadow k 80% of 100 in shadow mode",
		"plain a 80% of 100", "plain c%3Ad 80% of 100",
		"topped up k 80% of 100", "topped up k 100% of 100", "topped up k 80% of 200")
}

// TestThresholdsOfEachPeriod wants events anew in each period, by the clock of the store.
func TestThresholdsOfEachPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	var clock atomic.Int64
	clock.Store(now.UnixMicro())
	store := runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return time.UnixMicro(clock.Load()) }))
	told := newThresholds(2, on(store))
	rule := &runtime.Rule{Name: "r", Period: runtime.Day, Max: 1, Algorithm: runtime.FixedWindow}
	var want []string
	for day := range 5 {
		clock.Store(now.AddDate(0, 0, day).UnixMicro())
		for i := range 6 {
			_, _ = told.limiters[i%2].Take(context.Background(), rule.Limit(key("k")))
		}
		want = append(want, "r k 80% of 1", "r k 100% of 1")
		told.await(len(want))
	}
	told.wants(t, want...)
}

// TestThresholdTooLate wants nothing told of a period that is over, and the next one to have
// its events all the same.
func TestThresholdTooLate(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	var clock atomic.Int64
	clock.Store(day.UnixMicro())
	store := newFake(runtime.WithClock(func() time.Time { return time.UnixMicro(clock.Load()) }))
	store.take = func(ctx context.Context, calls []terms.Call) error {
		if asksTold(calls) {
			clock.Store(day.Add(time.Minute).UnixMicro())
		}
		return store.MemoryStore.Take(ctx, calls)
	}
	told := newThresholds(1, on(store))
	rule := &runtime.Rule{Name: "r", Period: runtime.Day, Max: 1, Algorithm: runtime.FixedWindow}
	take := func() {
		_, err := told.limiters[0].Take(context.Background(), rule.Limit(key("k")))
		ok(t, err)
	}
	take()
	for store.resets.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	take()
	told.await(2)
	told.wants(t, "r k 80% of 1", "r k 100% of 1")
}

// testThresholdsLeased wants a share told once where processes decide by leases.
func testThresholdsLeased(t *testing.T, replica replicas) {
	told := newThresholds(2, replica)
	rule := budget("leased")
	rule.Max, rule.Lease = 20_000, time.Second
	concurrently(8, func(i int) {
		for {
			if _, err := told.limiters[i%2].Take(context.Background(), rule.Limit(key("k"))); err != nil {
				return
			}
		}
	})
	told.wants(t, "leased k 80% of 20000", "leased k 100% of 20000")
}

// TestThresholdAskedAgain wants a share told by a later decision if the store did not say
// whether it was, and a process to ask no more once it knows.
func TestThresholdAskedAgain(t *testing.T) {
	t.Parallel()
	store := newFake()
	var asked atomic.Int64
	store.take = func(ctx context.Context, calls []terms.Call) error {
		if asksTold(calls) && asked.Add(1) <= 3 {
			return errBroken
		}
		return store.MemoryStore.Take(ctx, calls)
	}
	told := newThresholds(1, on(store))
	limiter := told.limiters[0]
	take := func() { _, _ = limiter.Take(context.Background(), budget("again").Limit(key("k")).WithCost(20)) }
	for range 4 {
		take()
	}
	for ; told.count() < 2; time.Sleep(time.Millisecond) {
		take()
	}
	told.wants(t, "again k 80% of 100", "again k 100% of 100")
}

// asksTold reports whether a store is asked whether a share was told.
func asksTold(calls []terms.Call) bool {
	return bytes.Contains(calls[0].Charges[0].Key, []byte(terms.ToldMark))
}
