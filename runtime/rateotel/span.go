package rateotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// refused adds an event to the span of a call that was refused.
func refused(ctx context.Context, ev *observe.DecisionEvent) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("rategen.rule", strings.ToValidUTF8(ev.Rule, "\uFFFD")),
		attribute.Int64("rategen.remaining", ev.Remaining),
	}
	if ev.RetryAfter != runtime.Never {
		attributes = append(attributes, attribute.Float64("rategen.retry_after", ev.RetryAfter.Seconds()))
	}
	span.AddEvent("rategen.refused", trace.WithAttributes(attributes...))
}
