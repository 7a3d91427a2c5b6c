package rateotel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateotel"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

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
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				instruments[m.Name] = fmt.Sprintf("counter %s %t", m.Unit, data.IsMonotonic)
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Value)
				}
			case metricdata.Sum[float64]:
				instruments[m.Name] = fmt.Sprintf("counter %s %t", m.Unit, data.IsMonotonic)
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Value)
				}
			case metricdata.Gauge[float64]:
				instruments[m.Name] = "gauge " + m.Unit
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Value)
				}
			case metricdata.Histogram[float64]:
				instruments[m.Name] = "histogram " + m.Unit
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.BucketCounts)
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
		before, _ := collect(t, reader)
		for series, want := range map[string]string{
			"rategen.decisions{rule=orders.Create,source=store,verdict=refused}": "0",
			"rategen.near_limit{rule=orders.Create}":                             "", // it has had no call
			"rategen.build.info{version=(devel)}":                                "1",
			"rategen.rule.limit{rule=orders.Create}":                             "5",
			"rategen.permits.in_flight{rule=orders.Export}":                      "0",
		} {
			if before[series] != want {
				t.Errorf("before any call %s is %q, want %s", series, before[series], want)
			}
		}
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
		after, instruments := collect(t, reader)
		for series, want := range map[string]string{
			"rategen.decisions{rule=orders.Create,source=store,verdict=admitted}":      "5",
			"rategen.decisions{rule=orders.Create,source=store,verdict=refused}":       "1",
			"rategen.cost{rule=orders.Export,verdict=admitted}":                        "6",
			"rategen.near_limit{rule=orders.Create}":                                   "3",
			"rategen.permits.in_flight{rule=orders.Export}":                            "6",
			"rategen.rule.limit{rule=orders.Create}":                                   "5",
			"rategen.rule.window{rule=orders.Create}":                                  "60",
			"rategen.rule.info{algorithm=sliding-log,mode=enforce,rule=orders.Create}": "1",
			"rategen.failures{class=oom,policy=open,rule=orders.Create}":               "1",
			"rategen.breaker.open{node=10.0.0.1:6379}":                                 "1",
			"rategen.redis.memory.used{}":                                              "800",
			"rategen.redis.memory.max{}":                                               "1000",
			"rategen.redis.evicted{}":                                                  "7",
			"rategen.adaptive.factor{rule=orders.Search}":                              "0.25",
			"rategen.overrides{}":                                                      "2",
			"rategen.overrides.rejected{}":                                             "1",
			"rategen.overrides.unread{}":                                               "0",
			"rategen.waiting{rule=orders.Mail}":                                        "1",
			"rategen.waits{admitted=true,rule=orders.Mail}":                            "1",
			"rategen.waits{admitted=false,rule=orders.Mail}":                           "0",
			"rategen.wait.time{rule=orders.Mail}":                                      "1.5",
			"rategen.panics{in=scaler}":                                                "1",
			"rategen.decision.duration{source=store}":                                  "[0 0 0 8 0 0 0 0 0 0 0 0 0 0]",
		} {
			if after[series] != want {
				t.Errorf("%s is %q, want %s", series, after[series], want)
			}
		}
		want := map[string]string{
			"rategen.decisions": "counter {decision} true", "rategen.cost": "counter {event} true",
			"rategen.near_limit": "counter {decision} true", "rategen.hidden_refusals": "counter {refusal} true", "rategen.served_refusals": "counter {refusal} true", "rategen.failures": "counter {failure} true",
			"rategen.breaker.open": "gauge ", "rategen.overrides": "gauge {rule}", "rategen.overrides.rejected": "counter {rejection} true", "rategen.overrides.unread": "gauge ", "rategen.overrides.used": "counter {decision} true",
			"rategen.waiting": "gauge {call}", "rategen.waits": "counter {call} true", "rategen.wait.time": "counter s true",
			"rategen.adaptive.factor": "gauge ", "rategen.redis.memory.used": "gauge By", "rategen.redis.memory.max": "gauge By", "rategen.redis.evicted": "counter {key} true",
			"rategen.panics": "counter {panic} true", "rategen.build.info": "gauge ", "rategen.rule.info": "gauge ", "rategen.rule.enforced": "gauge ",
			"rategen.rule.limit": "gauge ", "rategen.rule.window": "gauge s", "rategen.permits.in_flight": "gauge {permit}",
			"rategen.decision.duration": "histogram s",
		}
		if diff := cmp.Diff(want, instruments); diff != "" {
			t.Errorf("instruments (-want +got):\n%s", diff)
		}
	})
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

// TestThresholds wants the keys counted that have used a share of their period.
func TestThresholds(t *testing.T) {
	reader := sdk.NewManualReader()
	o, err := rateotel.Observer(sdk.NewMeterProvider(sdk.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
	month := &runtime.Rule{Name: "month", Period: rule.Month, Max: 9, Algorithm: runtime.FixedWindow}
	if _, err := limiter.Take(t.Context(), month.Limit(nil).WithCost(8)); err != nil {
		t.Fatal(err)
	}
	if err := limiter.Close(); err != nil { // which waits for what is told
		t.Fatal(err)
	}
	values, instruments := collect(t, reader)
	if instruments["rategen.thresholds"] != "counter {key} true" || values["rategen.thresholds{percent=80,rule=month}"] != "1" {
		t.Errorf("got %v, %v", instruments, values)
	}
}
