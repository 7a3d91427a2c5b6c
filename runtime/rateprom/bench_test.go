package rateprom_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateprom"
)

// BenchmarkDecision measures what metrics add to a decision: in memory, where the
// store decides and durations are counted, and by the process's own cap, which is
// as quick as a remembered denial.
func BenchmarkDecision(b *testing.B) {
	for _, metrics := range []struct {
		name string
		opts []rateprom.Option
		none bool
	}{
		{name: "without", none: true},
		{name: "with"},
		{name: "with, exemplars on and none to attach", opts: []rateprom.Option{rateprom.WithExemplar(func(context.Context) prometheus.Labels { return nil })}},
	} {
		b.Run(metrics.name, func(b *testing.B) {
			var opts []runtime.Option
			if !metrics.none {
				opts = append(opts, runtime.WithObserver(observer(b, prometheus.NewRegistry(), metrics.opts...)))
			}
			limiter := runtime.New(runtime.NewMemoryStore(), append(opts, quiet)...)
			limit := (&runtime.Rule{Name: "employee.EmployeeService.GetByID", Window: time.Hour, Max: 1_000_000_000, Algorithm: runtime.TokenBucket}).Limit(nil)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = limiter.Take(context.Background(), limit)
			}
		})
	}
}

// BenchmarkObserver measures the observer by itself, on one core and on all.
func BenchmarkObserver(b *testing.B) {
	o := observer(b, prometheus.NewRegistry())
	ev := runtime.DecisionEvent{Rule: "employee.EmployeeService.GetByID", Source: runtime.SourceStore, Cost: 1, Limit: 100, Remaining: 99, Latency: 300 * time.Microsecond}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o.Decision(context.Background(), ev)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				o.Decision(context.Background(), ev)
			}
		})
	})
}
