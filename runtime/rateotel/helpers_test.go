package rateotel_test

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/metric"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateotel"
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
