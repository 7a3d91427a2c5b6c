package rateprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateprom"
	"github.com/rategen/rategen/runtime/rule"
)

// BenchmarkDecision measures what metrics add to a decision: in memory, where the
// store decides and durations are counted, and by the process's own cap, which is
// as quick as a remembered refusal.
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
	ev := observe.DecisionEvent{Rule: "employee.EmployeeService.GetByID", Source: rule.SourceStore, Cost: 1, Limit: 100, Remaining: 99, Latency: 300 * time.Microsecond}
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

// BenchmarkScrape measures how long a scrape of many rules takes.
func BenchmarkScrape(b *testing.B) {
	for _, rules := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			registry := prometheus.NewRegistry()
			limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(observer(b, registry)))
			for i := range rules {
				limiter.Register(&runtime.Rule{Name: fmt.Sprint("shop.Service.Method", i), Window: time.Second, Max: 10})
			}
			handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			b.ReportAllocs()
			for b.Loop() {
				response := httptest.NewRecorder()
				handler.ServeHTTP(response, request)
				if response.Code != http.StatusOK {
					b.Fatal(response.Body)
				}
				b.ReportMetric(float64(response.Body.Len()), "bytes")
			}
			goruntime.KeepAlive(limiter) // its rules are scraped while it is in memory
		})
	}
}
