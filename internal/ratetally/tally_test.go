package ratetally_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// read returns what a tally emits, by the name of the family and the labels. It fails
// if anything is emitted twice.
func read(t *testing.T, counted *ratetally.Tally) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	counted.Collect(func(f *ratetally.Family, value float64, labels ...string) {
		name := fmt.Sprintf("%s%q", f.Name, labels)
		if _, twice := values[name]; twice {
			t.Errorf("%s is emitted twice", name)
		}
		if len(labels) != len(f.Labels) {
			t.Errorf("%s: labels of a family with %q", name, f.Labels)
		}
		values[name] = value
	})
	return values
}

// TestBounds counts events of more rules and nodes than have series of their own,
// from several goroutines, and wants each counted once.
func TestBounds(t *testing.T) {
	counted := ratetally.New()
	o := counted.Observer()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
	for i := range 300 {
		limiter.Register(&runtime.Rule{Name: fmt.Sprint("rule", i*30), Window: time.Second, Max: int64(i)})
	}
	const rules, workers = 11_000, 2
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for i := range rules {
				counted.Decided(&observe.DecisionEvent{Rule: fmt.Sprint("rule", i), Source: rule.SourceStore, Cost: 2})
				o.Failure(context.Background(), observe.FailureEvent{Rule: fmt.Sprint("rule", i)})
			}
		})
	}
	read(t, counted)
	working.Wait()
	for i := range 1500 {
		o.Breaker(observe.BreakerEvent{Open: true, Node: fmt.Sprint("node", i)})
	}
	got := read(t, counted)
	var near, decisions, cost, failures, open float64
	for i := range rules {
		r := fmt.Sprint("rule", i)
		if _, ok := got[fmt.Sprintf("rategen.near_limit[%q]", r)]; ok {
			near++
		}
		decisions += got[fmt.Sprintf("rategen.decisions[%q %q %q]", r, "admitted", "store")]
		cost += got[fmt.Sprintf("rategen.cost[%q %q]", r, "admitted")]
		failures += got[fmt.Sprintf("rategen.failures[%q %q %q]", r, "other", "none")]
	}
	decisions += got[`rategen.decisions["other" "admitted" "store"]`]
	cost += got[`rategen.cost["other" "admitted"]`]
	failures += got[`rategen.failures["other" "other" "none"]`]
	if near != 10_000 || decisions != workers*rules || cost != 2*workers*rules || failures != workers*rules {
		t.Errorf("%v rules, %v decisions, %v cost, %v failures", near, decisions, cost, failures)
	}
	if other := got[`rategen.decisions["other" "admitted" "store"]`]; other != workers*1000 {
		t.Errorf("%v decisions of the others, want %d", other, workers*1000)
	}
	for i := range 1500 {
		open += got[fmt.Sprintf("rategen.breaker.open[%q]", fmt.Sprint("node", i))]
	}
	if other := got[`rategen.breaker.open["other"]`]; open != 999 || other != 501 {
		t.Errorf("%v breakers are open, and %v others", open, other)
	}
	// All close, and other nodes take their places.
	for i := range 4000 {
		o.Breaker(observe.BreakerEvent{Open: i >= 3500, Node: fmt.Sprint("node", i)})
	}
	got = read(t, counted)
	var nodes int
	open = 0
	for i := range 4000 {
		if value, ok := got[fmt.Sprintf("rategen.breaker.open[%q]", fmt.Sprint("node", i))]; ok {
			nodes, open = nodes+1, open+value
		}
	}
	if _, others := got[`rategen.breaker.open["other"]`]; nodes != 999 || open != 500 || others {
		t.Errorf("%d nodes, of which %v are open, others: %t", nodes, open, others)
	}
}

// TestNearLimit tries how much of a limit is left around 0.8 of it.
func TestNearLimit(t *testing.T) {
	for limit := int64(-1); limit <= 50; limit++ {
		for remaining := int64(-1); remaining <= limit+1; remaining++ {
			counted := ratetally.New()
			counted.Decided(&observe.DecisionEvent{Rule: "a", Source: rule.SourceStore, Limit: limit, Remaining: remaining})
			want := 0.0
			if limit > 0 && float64(limit-remaining)/float64(limit) >= 0.8-1e-9 {
				want = 1
			}
			if got := read(t, counted)[`rategen.near_limit["a"]`]; got != want {
				t.Errorf("%d of %d left: %v, want %v", remaining, limit, got, want)
			}
		}
	}
}

// TestTwins wants one series of rules that have the same name in several limiters, with the
// numbers of the first.
func TestTwins(t *testing.T) {
	counted := ratetally.New()
	o := counted.Observer()
	for i := range int64(2) {
		for _, rule := range []*runtime.Rule{
			{Name: "a", Source: "x", Prefix: "x", Window: time.Second, Max: 10 + i, Algorithm: runtime.FixedWindow},
			{Name: "a", Source: "y", Window: time.Second, Max: 30 + i},
		} {
			limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o), runtime.WithObserver(o))
			defer goruntime.KeepAlive(limiter)
			limiter.Register(rule)
		}
	}
	got := read(t, counted)
	if max := got[`rategen.rule.limit["a"]`]; max != 10 {
		t.Errorf("max %v, want that of the first rule, 10", max)
	}
	if got[`rategen.rule.info["a" "fixed-window" "enforce"]`] != 1 {
		t.Errorf("no info of the first rule: %v", got)
	}
}

// TestOverrides tells of overrides that are rejected and of some that cannot be read,
// which are two things, until they are in force or the limiter is closed.
func TestOverrides(t *testing.T) {
	counted := ratetally.New()
	o := counted.Observer()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
	rejected, unread := 0.0, 0.0
	tell := func(err error) {
		o.Override(observe.OverrideEvent{Rules: 2, Err: err})
		unread = 0
		if errors.Is(err, runtime.ErrInvalidOverrides) {
			rejected++
		} else if err != nil {
			unread = 1
		}
	}
	wrong := fmt.Errorf("line 1: %w", runtime.ErrInvalidOverrides)
	for i, err := range []error{nil, context.DeadlineExceeded, wrong, wrong, nil, wrong, context.DeadlineExceeded, nil, context.DeadlineExceeded} {
		tell(err)
		if got := read(t, counted); got[`rategen.overrides.rejected[]`] != rejected || got[`rategen.overrides.unread[]`] != unread || got[`rategen.overrides[]`] != 2 {
			t.Errorf("after event %d, %v: %v", i, err, got)
		}
	}
	if err := limiter.Close(); err != nil {
		t.Error(err)
	}
	if got := read(t, counted); got[`rategen.overrides.unread[]`] != 0 || got[`rategen.overrides[]`] != 0 {
		t.Errorf("after Close: %v", got)
	}
}

// TestUnregistered wants the factor and the permits of rules that no limiter has
// registered.
func TestUnregistered(t *testing.T) {
	counted := ratetally.New()
	o := counted.Observer()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
	rule := &runtime.Rule{Name: "a", Window: time.Hour, Max: 3, Algorithm: runtime.Concurrency}
	d, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(2))
	limittest.OK(t, err)
	o.Scale(observe.ScaleEvent{Rule: "b", Factor: 0.25})
	got := read(t, counted)
	if got[`rategen.permits.in_flight["a"]`] != 2 || got[`rategen.adaptive.factor["b"]`] != 0.25 {
		t.Errorf("got %v", got)
	}
	limittest.OK(t, limiter.Refund(t.Context(), d))
	if n, ok := read(t, counted)[`rategen.permits.in_flight["a"]`]; n != 0 || !ok {
		t.Errorf("%v permits after the call, want 0", n)
	}
}

// TestHolds tells of refusals by peers, and for how long the longest hold goes on, until a
// release or its end.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, counted := t.Context(), ratetally.New()
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(counted.Observer()))
		defer limiter.Close()
		rule := &runtime.Rule{Name: "peer", Window: time.Hour, Max: 3, Hold: true}
		limiter.Register(rule)
		a, b := rule.Limit(runtime.NewKey().AddString("a")), rule.Limit(runtime.NewKey().AddString("b"))
		for i, step := range []struct {
			do            func() error
			held, refused float64
		}{
			{func() error { return nil }, 0, 0},
			{func() error {
				bridge.LimiterOf(limiter).PeerRefused(ctx, rule)
				return limiter.Hold(ctx, a, time.Minute)
			}, 60, 1},
			{func() error {
				bridge.LimiterOf(limiter).PeerRefused(ctx, rule)
				return limiter.Hold(ctx, b, time.Second)
			}, 60, 2},
			{func() error { time.Sleep(20 * time.Second); return nil }, 40, 2},
			{func() error { return limiter.Hold(ctx, b, time.Minute) }, 60, 2},
			{func() error { return limiter.Release(ctx, b) }, 0, 2},
			{func() error { return limiter.Hold(ctx, b, time.Second) }, 1, 2},
			{func() error { time.Sleep(time.Minute); return nil }, 0, 2},
		} {
			limittest.OK(t, step.do())
			got := read(t, counted)
			if got[`rategen.held["peer"]`] != step.held || got[`rategen.peer_refusals["peer"]`] != step.refused {
				t.Errorf("after step %d: held for %v and %v refusals, want %v and %v", i, got[`rategen.held["peer"]`], got[`rategen.peer_refusals["peer"]`], step.held, step.refused)
			}
			if _, is := got[`rategen.waiting["peer"]`]; !is {
				t.Errorf("after step %d nothing tells how many calls wait", i)
			}
		}
	})
}

// TestThresholdsAreCounted wants a key counted once for each share of its period, and series
// of rules with a period from the start.
func TestThresholdsAreCounted(t *testing.T) {
	counted := ratetally.New()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(counted.Observer()))
	month := &runtime.Rule{Name: "month", Period: rule.Month, Max: 10, Algorithm: runtime.FixedWindow}
	limiter.Register(month, &runtime.Rule{Name: "minute", Window: time.Minute, Max: 10})
	wants := func(eighty, hundred float64) {
		t.Helper()
		got := read(t, counted)
		is80, has80 := got[`rategen.thresholds["month" "80"]`]
		is100, has100 := got[`rategen.thresholds["month" "100"]`]
		if _, minute := got[`rategen.thresholds["minute" "80"]`]; !has80 || !has100 || minute || is80 != eighty || is100 != hundred {
			t.Errorf("got %v, want %v and %v", got, eighty, hundred)
		}
	}
	wants(0, 0)
	for id, calls := range map[string]int{"a": 9, "b": 12, "c": 3} {
		for range calls {
			_, _ = limiter.Take(t.Context(), month.Limit(runtime.NewKey().AddString(id)))
		}
	}
	limittest.OK(t, limiter.Close())
	if o := counted.Observer(); o.Threshold != nil {
		o.Threshold(observe.ThresholdEvent{Rule: "month", Percent: 50}) // of a later version
	}
	got := read(t, counted)
	if got[`rategen.thresholds["month" "80"]`] != 2 || got[`rategen.thresholds["month" "100"]`] != 1 {
		t.Errorf("got %v, want 2 keys over 80 percent, and 1 over 100", got)
	}
}
