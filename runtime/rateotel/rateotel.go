// Package rateotel exports what limiters do through OpenTelemetry: metrics, and an
// event on the span of a call that is refused.
//
//	observer, err := rateotel.Observer(provider)
//	if err != nil {
//		return err
//	}
//	limiter := runtime.New(store, runtime.WithObserver(observer))
//
// The metrics are those of package rateprom: rategen.decisions here is
// rategen_decisions_total there. Attributes are names of rules, which come from the
// program, words from short lists and the addresses of at most 1,000 servers. None
// holds a key. 10,000 rules have metrics of their own, the others share those of the
// rule "other". docs/metrics.md describes every metric.
package rateotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rategen/rategen/internal/buildversion"
	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// scope is the name of the instrumentation.
const scope = "github.com/rategen/rategen/runtime/rateotel"

// Observer makes metrics of a meter provider, and returns the observer that feeds
// them, for [runtime.WithObserver]. Several limiters may have the same observer, and
// share its metrics then. Make one observer for each provider: two report the same
// metrics twice. The provider keeps the observer in memory, and not its limiters.
//
// If a limit refuses a call whose context has a recording span, the span gets the event
// rategen.refused, with the attributes rategen.rule, rategen.remaining and
// rategen.retry_after in seconds, which is left out if waiting does not help. No span
// is started.
//
// The error says that the provider is nil, or that it refused a metric.
func Observer(provider metric.MeterProvider) (*observe.Observer, error) {
	if provider == nil {
		return nil, errors.New("rateotel: no meter provider: pass one, such as otel.GetMeterProvider()")
	}
	e := &exporter{tally: ratetally.New()}
	if err := e.instrument(provider.Meter(scope, metric.WithInstrumentationVersion(buildversion.Linked()))); err != nil {
		return nil, fmt.Errorf("rateotel: %w", err)
	}
	observer := e.tally.Observer()
	observer.Decision = e.decided
	return observer, nil
}

// An exporter feeds instruments. Counting a decision in a tally, which is read when
// metrics are collected, takes a tenth of the time that adding to an instrument does.
type exporter struct {
	tally       *ratetally.Tally
	instruments map[*ratetally.Family]instrument
	durations   metric.Float64Histogram
	sources     [maxSources][]metric.RecordOption
}

// maxSources is a power of two, so that a mask keeps a source within an array.
const maxSources = 8

// An instrument is that of a family.
type instrument struct {
	whole metric.Int64Observable // of a counter, unless it is one of seconds
	real  metric.Float64Observable
	keys  []string
}

// instrument makes the instruments, and has them observed when metrics are collected.
func (e *exporter) instrument(meter metric.Meter) (err error) {
	e.instruments = map[*ratetally.Family]instrument{}
	var all []metric.Observable
	for _, f := range ratetally.Families {
		made := instrument{keys: f.Labels}
		if f.Kind != ratetally.Counter {
			made.real, err = meter.Float64ObservableGauge(f.Name, metric.WithDescription(f.Help), metric.WithUnit(f.Unit))
			all = append(all, made.real)
		} else if f.Unit == "s" {
			made.real, err = meter.Float64ObservableCounter(f.Name, metric.WithDescription(f.Help), metric.WithUnit(f.Unit))
			all = append(all, made.real)
		} else {
			made.whole, err = meter.Int64ObservableCounter(f.Name, metric.WithDescription(f.Help), metric.WithUnit(f.Unit))
			all = append(all, made.whole)
		}
		if err != nil {
			return err
		}
		e.instruments[f] = made
	}
	d := ratetally.Duration
	e.durations, err = meter.Float64Histogram(d.Name, metric.WithDescription(d.Help), metric.WithUnit(d.Unit),
		metric.WithExplicitBucketBoundaries(ratetally.DurationBounds...))
	if err != nil {
		return err
	}
	for s := range e.sources {
		set := attribute.NewSet(attribute.String(d.Labels[0], rule.Source(s).String()))
		e.sources[s] = []metric.RecordOption{metric.WithAttributeSet(set)}
	}
	_, err = meter.RegisterCallback(e.collect, all...)
	return err
}

// collect observes everything that was counted.
func (e *exporter) collect(_ context.Context, o metric.Observer) error {
	e.tally.Collect(func(f *ratetally.Family, value float64, labels ...string) {
		made := e.instruments[f]
		attributes := make([]attribute.KeyValue, len(labels))
		for i, label := range labels {
			attributes[i] = attribute.String(made.keys[i], label)
		}
		with := metric.WithAttributeSet(attribute.NewSet(attributes...))
		if made.whole != nil {
			o.ObserveInt64(made.whole, int64(value), with)
		} else {
			o.ObserveFloat64(made.real, value, with)
		}
	})
	return nil
}

func (e *exporter) decided(ctx context.Context, ev observe.DecisionEvent) {
	e.tally.Decided(&ev)
	if ratetally.Waited(&ev) {
		e.durations.Record(ctx, ev.Latency.Seconds(), e.sources[ev.Source%maxSources]...)
	}
	if ev.Verdict == observe.VerdictRefused {
		refused(ctx, &ev)
	}
}
