package rateotel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rategen/rategen/runtime"
)

// An encoder writes attributes as they stand in the tests.
type encoder struct{}

func (encoder) ID() attribute.EncoderID { return attribute.EncoderID{} }

func (encoder) Encode(attributes attribute.Iterator) string {
	text := "{"
	for attributes.Next() {
		if text != "{" {
			text += ","
		}
		kv := attributes.Attribute()
		text += string(kv.Key) + "=" + kv.Value.Emit()
	}
	return text + "}"
}

// TestSpan wants an event on the span of each call that is refused, and no spans but
// those of the program.
func TestSpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := trace.NewTracerProvider(trace.WithSyncer(spans)).Tracer("test")
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(observer(t, noop.NewMeterProvider())))
	rule := &runtime.Rule{Name: "orders.Create", Window: time.Hour, Max: 3, Algorithm: runtime.FixedWindow}
	hidden := &runtime.Rule{Name: "orders.Trial", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}

	ctx, span := tracer.Start(t.Context(), "request")
	for _, limit := range []runtime.Limit{rule.Limit(nil), rule.Limit(nil).WithCost(3), rule.Limit(nil).WithCost(4), hidden.Limit(nil), hidden.Limit(nil)} {
		_, _ = limiter.Take(ctx, limit)
	}
	span.End()
	_, _ = limiter.Take(ctx, rule.Limit(nil).WithCost(3)) // the span has ended
	_, _ = limiter.Take(t.Context(), rule.Limit(nil).WithCost(3))

	var got []string
	for _, s := range spans.GetSpans() {
		got = append(got, s.Name)
		for _, event := range s.Events {
			got = append(got, event.Name)
			for _, kv := range event.Attributes {
				text := string(kv.Key) + "=" + kv.Value.Emit()
				if kv.Key == "rategen.retry_after" {
					if after := kv.Value.AsFloat64(); after < 3500 || after > 3600 {
						t.Errorf("retry after %v seconds, want an hour", after)
					}
					text = string(kv.Key)
				}
				got = append(got, text)
			}
		}
	}
	want := []string{
		"request",
		"rategen.refused", "rategen.rule=orders.Create", "rategen.remaining=2", "rategen.retry_after",
		"rategen.refused", "rategen.rule=orders.Create", "rategen.remaining=0", // it can never be admitted, and nothing was counted
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans and events (-want +got):\n%s", diff)
	}
}
