package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateotel"
	"github.com/rategen/rategen/runtime/rateprom"
)

// TestEqualNames has both adapters observe one limiter. What OpenTelemetry's own
// exporter for Prometheus makes of one is the scrape of the other, in names, types,
// units, labels and values.
func TestEqualNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		direct, translated := prometheus.NewRegistry(), prometheus.NewRegistry()
		ofProm, err := rateprom.Observer(direct)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := exporter.New(exporter.WithRegisterer(translated), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
		if err != nil {
			t.Fatal(err)
		}
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		defer func() { _ = provider.Shutdown(context.Background()) }()
		ofOTel, err := rateotel.Observer(provider)
		if err != nil {
			t.Fatal(err)
		}
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithObserver(ofProm), runtime.WithObserver(ofOTel))
		rule := &runtime.Rule{Name: "shop.Create \"now\"\xff", Window: time.Minute, Max: 5}
		export := &runtime.Rule{Name: "shop.Export", Window: time.Minute, Max: 5, Algorithm: runtime.Concurrency, Adaptive: half{}, Wait: time.Second}
		limiter.Register(rule, export)
		for range 7 {
			_, _ = limiter.Take(t.Context(), rule.Limit(nil))
		}
		for _, o := range []*runtime.Observer{ofProm, ofOTel} {
			for _, source := range []runtime.Source{runtime.SourceStore, runtime.SourceLocal, runtime.SourceFailure} {
				o.Decision(t.Context(), runtime.DecisionEvent{Rule: "shop.Create", Source: source, Latency: 3 * time.Millisecond})
			}
			o.Failure(t.Context(), runtime.FailureEvent{Rule: "shop.Create", Class: runtime.ClassDial, Policy: runtime.FailClosed})
			o.Breaker(runtime.BreakerEvent{Open: true, Node: "10.0.0.1:6379"})
			o.Override(runtime.OverrideEvent{Rules: 3, Err: errors.New("bad")})
			o.Wait(t.Context(), runtime.WaitEvent{Rule: "shop.Create", Waiting: true})
			o.Wait(t.Context(), runtime.WaitEvent{Rule: "shop.Create", Waited: 1234567 * time.Microsecond, Admitted: true})
			o.Memory(runtime.MemoryEvent{Used: 1 << 30, Max: 1 << 31})
			o.Panic(runtime.PanicEvent{In: "scaler"})
		}
		want, got := lines(t, direct), lines(t, translated)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Prometheus (-) and OpenTelemetry (+):\n%s", diff)
		}
		if len(want) < 50 {
			t.Errorf("%d lines only", len(want))
		}
	})
}

// lines returns a scrape without the texts that explain it.
func lines(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&out, family); err != nil {
			t.Fatal(err)
		}
	}
	set := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "# HELP") {
			set[line] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
