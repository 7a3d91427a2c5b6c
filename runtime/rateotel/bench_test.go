package rateotel_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateotel"
	"github.com/rategen/rategen/runtime/rule"
)

var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

func observer(tb testing.TB, provider metric.MeterProvider) *observe.Observer {
	tb.Helper()
	o, err := rateotel.Observer(provider)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// BenchmarkDecision measures what metrics add to a decision in memory, whose duration
// is recorded.
func BenchmarkDecision(b *testing.B) {
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			opts := []runtime.Option{quiet}
			if name == "with" {
				opts = append(opts, runtime.WithObserver(observer(b, sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader())))))
			}
			limiter := runtime.New(runtime.NewMemoryStore(), opts...)
			limit := (&runtime.Rule{Name: "employee.EmployeeService.GetByID", Window: time.Hour, Max: 1_000_000_000, Algorithm: runtime.TokenBucket}).Limit(nil)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = limiter.Take(context.Background(), limit)
			}
		})
	}
}

// BenchmarkObserver measures the observer by itself: a decision that waited for the
// store, and one that did not.
func BenchmarkObserver(b *testing.B) {
	o := observer(b, sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader())))
	for _, source := range []rule.Source{rule.SourceStore, rule.SourceRecalled} {
		ev := observe.DecisionEvent{Rule: "employee.EmployeeService.GetByID", Verdict: observe.VerdictRefused, Source: source, Cost: 1, Limit: 100, Remaining: 99, Latency: 300 * time.Microsecond}
		b.Run(source.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Decision(context.Background(), ev)
			}
		})
	}
}
