package rateprom_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateprom"
	"github.com/rategen/rategen/runtime/rule"
)

var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

func observer(tb testing.TB, registerer prometheus.Registerer, opts ...rateprom.Option) *observe.Observer {
	tb.Helper()
	o, err := rateprom.Observer(registerer, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// scrape returns all metrics as text.
func scrape(t *testing.T, g prometheus.Gatherer, format expfmt.Format) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := expfmt.NewEncoder(&out, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			t.Fatal(err)
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok {
		_ = closer.Close()
	}
	return out.String()
}

var text = expfmt.NewFormat(expfmt.TypeTextPlain)

// A slow store takes 300 µs for each call, or has no answer when broken.
type slow struct {
	terms.Store
	broken bool
}

func (s *slow) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(300 * time.Microsecond)
	if s.broken {
		return context.DeadlineExceeded
	}
	return s.Store.Take(ctx, calls)
}

type half struct{}

func (half) Factor(rule.Load) float64 { return 0.5 }
