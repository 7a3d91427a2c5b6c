// Package rateprom exports what limiters do as metrics of Prometheus.
//
//	observer, err := rateprom.Observer(registry)
//	if err != nil {
//		return err
//	}
//	limiter := runtime.New(store, runtime.WithObserver(observer))
//
// Labels are names of rules, which come from the program, words from short lists
// and the addresses of at most 1,000 servers. No label holds a key. 10,000 rules
// have series of their own, the others share those of the rule "other".
//
// docs/metrics.md describes every metric. Package rateotel exports the same ones
// through OpenTelemetry.
package rateprom

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime/observe"
)

// An Option configures an [Observer].
type Option func(*collector)

// WithExemplar attaches exemplars to the counts of decisions and to their durations:
// labels that lead to the trace of a call, such as trace_id. The function finds them
// in the call's context and returns nil if there are none. It is called for every
// decision, so it must be quick, and what it has returned must not be changed. Labels
// that Prometheus does not accept, because they have more than 128 characters for
// instance, are left out.
//
// Exemplars are scraped in the OpenMetrics format, see EnableOpenMetrics of
// promhttp.HandlerOpts, and stored by a Prometheus that runs with
// --enable-feature=exemplar-storage.
func WithExemplar(labels func(context.Context) prometheus.Labels) Option {
	return func(c *collector) { c.exemplars.labels = labels }
}

// Observer registers metrics with a registerer, and returns the observer that feeds
// them, for [runtime.WithObserver].
//
// Limiters share the metrics of a registerer: the second Observer for it returns the
// first one, and its options have no effect. To tell limiters apart, wrap the
// registerer of each with a value of the same label, as in
// prometheus.WrapRegistererWith(prometheus.Labels{"limiter": "public"}, registry). The
// metrics do not keep a limiter in memory: what it declares of its rules goes with it,
// and what was counted stays.
//
// The error says that the registerer is nil, or has metrics of another kind with the
// same names.
func Observer(registerer prometheus.Registerer, opts ...Option) (*observe.Observer, error) {
	if registerer == nil {
		return nil, errors.New("rateprom: no registerer: pass a prometheus.Registry, or prometheus.DefaultRegisterer")
	}
	c := newCollector(opts)
	var registered prometheus.AlreadyRegisteredError
	err := registerer.Register(c)
	if err == nil {
		return c.observer, nil
	}
	if errors.As(err, &registered) {
		if first, ok := registered.ExistingCollector.(*collector); ok {
			return first.observer, nil
		}
	} else {
		return nil, fmt.Errorf("rateprom: %w", err)
	}
	return nil, errors.New("rateprom: the registerer has another collector of rategen's metrics: pass a registerer of its own")
}
