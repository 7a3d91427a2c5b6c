package rateotel_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateotel"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

var update = flag.Bool("update", false, "write the golden files")

// A slow store takes 300 µs for each call.
type slow struct{ terms.Store }

func (s slow) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(300 * time.Microsecond)
	return s.Store.Take(ctx, calls)
}

// collect returns all values by their instrument and attributes, and what the
// instruments are.
func collect(t *testing.T, reader *sdk.ManualReader) (values, instruments map[string]string) {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	values, instruments = map[string]string{}, map[string]string{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Description == "" {
				t.Errorf("%s has no description", m.Name)
			}
			point := func(attributes attribute.Set, value any) {
				values[m.Name+attributes.Encoded(encoder{})] = fmt.Sprint(value)
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				instruments[m.Name] = fmt.Sprintf("counter %s %t", m.Unit, data.IsMonotonic)
				for _, p := range data.DataPoints {
					point(p.Attributes, p.Value)
				}
			case metricdata.Sum[float64]:
				instruments[m.Name] = fmt.Sprintf("counter %s %t", m.Unit, data.IsMonotonic)
				for _, p := range data.DataPoints {
					point(p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				instruments[m.Name] = "gauge " + m.Unit
				for _, p := range data.DataPoints {
					point(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				instruments[m.Name] = "histogram " + m.Unit
				for _, p := range data.DataPoints {
					point(p.Attributes, p.BucketCounts)
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return values, instruments
}

// TestMetrics makes calls through two limiters with one observer, and reads what was
// counted before and after.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdk.NewManualReader()
		o := observer(t, sdk.NewMeterProvider(sdk.WithReader(reader)))
		create := &runtime.Rule{Name: "orders.Create", Window: time.Minute, Max: 5}
		export := &runtime.Rule{Name: "orders.Export", Window: time.Minute, Max: 9, Algorithm: runtime.Concurrency}
		var limiters []*runtime.Limiter
		for range 2 {
			l := runtime.New(rawstore.New(slow{rawstore.Wrap(runtime.NewMemoryStore()).Store}, nil), quiet, runtime.WithObserver(o))
			l.Register(create, export)
			limiters = append(limiters, l)
		}
		golden(t, "before.txt", reader)
		for range 6 {
			_, _ = limiters[0].Take(t.Context(), create.Limit(nil))
		}
		for _, l := range limiters {
			d, err := l.Take(t.Context(), export.Limit(nil).WithCost(3))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Refund(context.Background(), d) }()
		}
		o.Failure(t.Context(), observe.FailureEvent{Rule: "orders.Create", Class: observe.ClassOOM, Policy: runtime.FailOpen})
		o.Breaker(observe.BreakerEvent{Open: true, Node: "10.0.0.1:6379"})
		o.Wait(t.Context(), observe.WaitEvent{Rule: "orders.Mail", Waiting: true})
		o.Wait(t.Context(), observe.WaitEvent{Rule: "orders.Mail", Waiting: true})
		o.Wait(t.Context(), observe.WaitEvent{Rule: "orders.Mail", Waited: 1500 * time.Millisecond, Admitted: true})
		o.Memory(observe.MemoryEvent{Used: 800, Max: 1000, Evicted: 7})
		o.Scale(observe.ScaleEvent{Rule: "orders.Search", Factor: 0.25})
		o.Override(observe.OverrideEvent{Rules: 2, Err: fmt.Errorf("bad: %w", runtime.ErrInvalidOverrides)})
		o.Panic(observe.PanicEvent{In: "scaler"})
		month := &runtime.Rule{Name: "month", Period: rule.Month, Max: 9, Algorithm: runtime.FixedWindow}
		limittest.Taken(t, limiters[1], month.Limit(nil).WithCost(8)) // 80 % of the period
		synctest.Wait()
		golden(t, "after.txt", reader)
	})
}

// golden compares all values and instruments with a file of testdata.
func golden(t *testing.T, name string, reader *sdk.ManualReader) {
	t.Helper()
	values, instruments := collect(t, reader)
	var got strings.Builder
	for _, all := range []map[string]string{values, instruments} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&got, "%s %s\n", key, all[key])
		}
	}
	file := "testdata/" + name
	if *update {
		limittest.OK(t, os.WriteFile(file, []byte(got.String()), 0o666))
	}
	want, err := os.ReadFile(file)
	limittest.OK(t, err)
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", name, diff)
	}
}

// TestNoProvider wants an error that says what is missing.
func TestNoProvider(t *testing.T) {
	if _, err := rateotel.Observer(nil); err == nil || !strings.Contains(err.Error(), "no meter provider") {
		t.Error(err)
	}
}

// TestAllocates wants a decision to allocate nothing.
func TestAllocates(t *testing.T) {
	o := observer(t, sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader())))
	ctx := context.Background()
	for _, ev := range []observe.DecisionEvent{
		{Rule: "a", Source: rule.SourceStore, Cost: 3, Limit: 1, Latency: time.Millisecond},
		{Rule: "a", Verdict: observe.VerdictRefused, Source: rule.SourceRecalled, Cost: 1},
	} {
		if n := testing.AllocsPerRun(1000, func() { o.Decision(ctx, ev) }); n != 0 {
			t.Errorf("%v: %v allocations", ev.Source, n)
		}
	}
}
