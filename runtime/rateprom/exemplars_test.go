package rateprom_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateprom"
	"github.com/rategen/rategen/runtime/rule"
)

type traceKey struct{}

func trace(ctx context.Context) prometheus.Labels {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		return prometheus.Labels{"trace_id": id}
	}
	return nil
}

// TestExemplars wants the trace of the last call on counts and durations, and a bad
// one left out.
func TestExemplars(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := observer(t, registry, rateprom.WithExemplar(trace))
	traced := func(id string) context.Context { return context.WithValue(t.Context(), traceKey{}, id) }
	ev := observe.DecisionEvent{Rule: "a\xff", Verdict: observe.VerdictRefused, Source: rule.SourceStore, Cost: 1, Limit: 1, Latency: 300 * time.Microsecond}
	o.Decision(traced("4bf92f35"), ev)
	o.Decision(t.Context(), ev)
	ev.Latency = time.Minute
	o.Decision(traced("77aa"), ev)
	ev.Source, ev.Latency = rule.SourceLocal, time.Millisecond
	o.Decision(traced(strings.Repeat("x", 200)), ev)
	ev.Rule = "b"
	o.Decision(traced("\xff"), ev)
	got := scrape(t, registry, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for _, want := range []string{
		`rategen_decisions_total{rule="a` + "\uFFFD" + `",source="store",verdict="refused"} 3.0 # {trace_id="77aa"} 1.0 `,
		`rategen_decision_duration_seconds_bucket{source="store",le="0.0005"} 2 # {trace_id="4bf92f35"} 0.0003 `,
		`rategen_decision_duration_seconds_bucket{source="store",le="+Inf"} 3 # {trace_id="77aa"} 60.0 `,
		`rategen_decision_duration_seconds_bucket{source="local",le="0.001"} 2` + "\n",
		`rategen_decisions_total{rule="b",source="local",verdict="refused"} 1.0` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if n := len(durationsOf(t, registry, "store").Exemplars); n != 2 {
		t.Errorf("%d exemplars on the native histogram, want 2", n)
	}
}

// TestAllocates wants a decision to allocate nothing, of a known rule or of one of the
// many that have no series of their own, with exemplars on and none to attach.
func TestAllocates(t *testing.T) {
	o := observer(t, prometheus.NewRegistry(), rateprom.WithExemplar(trace))
	for i := range 10_100 {
		o.Decision(t.Context(), observe.DecisionEvent{Rule: strings.Repeat("x", i%100) + string(rune(i+0x1000))})
	}
	ctx := t.Context()
	for _, ev := range []observe.DecisionEvent{
		{Rule: "\u1000", Source: rule.SourceStore, Cost: 3, Limit: 1, Latency: time.Millisecond},
		{Rule: "unknown", Verdict: observe.VerdictRefused, Source: rule.SourceRecalled, Cost: 1},
	} {
		if n := testing.AllocsPerRun(1000, func() { o.Decision(ctx, ev) }); n != 0 {
			t.Errorf("%s: %v allocations", ev.Rule, n)
		}
	}
}
