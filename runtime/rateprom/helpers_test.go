package rateprom_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateprom"
)

var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

func observer(tb testing.TB, registerer prometheus.Registerer, opts ...rateprom.Option) *runtime.Observer {
	tb.Helper()
	o, err := rateprom.Observer(registerer, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}
