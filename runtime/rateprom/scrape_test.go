package rateprom_test

import (
	"context"
	"flag"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

var update = flag.Bool("update", false, "write the golden files")

// TestScrape compares the whole text of two scrapes, before the first call and after
// all kinds of events.
func TestScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		o := observer(t, registry)
		store := &slow{Store: rawstore.Wrap(runtime.NewMemoryStore()).Store}
		var overrides atomic.Pointer[runtime.Overrides]
		overrides.Store(new(runtime.Overrides))
		limiter := runtime.New(rawstore.New(store, nil), quiet, runtime.WithObserver(o), runtime.WithFailurePolicy(runtime.FailClosed),
			runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return *overrides.Load(), nil }), time.Second))
		defer func() { _ = limiter.Close() }()
		create := &runtime.Rule{Name: "orders.Create", Window: 10 * time.Second, Max: 5}
		export := &runtime.Rule{Name: "orders.Export", Window: time.Minute, Max: 2, Algorithm: runtime.Concurrency, Fail: runtime.FailLocal}
		search := &runtime.Rule{Name: "orders.Search", Window: time.Minute, Max: 1000, Algorithm: runtime.TokenBucket, Mode: runtime.ModeShadow, Adaptive: half{}}
		limiter.Register(create, export, search)
		golden(t, "before.txt", scrape(t, registry, text))

		ctx := t.Context()
		for range 6 {
			_, _ = limiter.Take(ctx, create.Limit(nil))
		}
		_, _ = limiter.Take(ctx, search.Limit(nil).WithCost(100), create.Limit(nil))
		d, err := limiter.Take(ctx, export.Limit(nil).WithCost(2))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = limiter.Take(ctx, export.Limit(nil))
		store.broken = true
		_, _ = limiter.Take(ctx, create.Limit(nil))
		_, _ = limiter.Take(ctx, export.Limit(nil))
		store.broken = false
		overrides.Store(&runtime.Overrides{Rules: map[string]rule.Override{
			"orders.Create": {Max: new(int64(50)), Window: new(time.Minute), Mode: new(runtime.ModeShadow)},
			"orders.Search": {Enabled: new(false)},
		}})
		time.Sleep(1500 * time.Millisecond)
		overrides.Store(&runtime.Overrides{Rules: map[string]rule.Override{"orders.Create": {Max: new(int64(-1))}}})
		time.Sleep(time.Second)
		// Events of a store on Redis.
		o.Breaker(observe.BreakerEvent{Open: true, Node: "10.0.0.1:6379"})
		o.Breaker(observe.BreakerEvent{Open: true, Node: "10.0.0.2:6379"})
		o.Breaker(observe.BreakerEvent{Open: false, Node: "10.0.0.2:6379"})
		o.Memory(observe.MemoryEvent{Used: 800 << 20, Max: 1 << 30, High: true, Evicted: 3})
		o.Panic(observe.PanicEvent{In: "override source"})
		o.Failure(ctx, observe.FailureEvent{Rule: "orders.Create", Class: observe.ClassOther, Settling: true})
		o.Decision(ctx, observe.DecisionEvent{Rule: "orders.Create", Verdict: observe.VerdictRefused, Source: rule.SourceRecalled, Cost: 1, Limit: 5, Latency: time.Second})
		golden(t, "after.txt", scrape(t, registry, text))
		if err := limiter.Refund(ctx, d); err != nil {
			t.Error(err)
		}
	})
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", name, diff)
	}
}
