package rateprom

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// exemplars are the last decisions whose calls have a trace, one for each count of
// decisions and for each bucket of their durations.
type exemplars struct {
	labels    func(context.Context) prometheus.Labels // or nil
	counts    sync.Map                                // labels of the count -> *prometheus.Exemplar
	durations [maxSources][maxBuckets]atomic.Pointer[prometheus.Exemplar]
}

const maxBuckets = 16

// A countOf are the labels of a count of decisions.
type countOf [3]string

// decided notes a decision, if its call has a trace.
func (x *exemplars) decided(ctx context.Context, rule string, ev *observe.DecisionEvent) {
	labels := x.labels(ctx)
	if len(labels) == 0 {
		return
	}
	now := time.Now()
	x.counts.Store(countOf{rule, ev.Verdict.String(), ev.Source.String()}, &prometheus.Exemplar{Value: 1, Labels: labels, Timestamp: now})
	if ratetally.Waited(ev) {
		bucket := cells[cellOf(ev.Latency)].classic
		x.durations[ev.Source%maxSources][bucket%maxBuckets].Store(&prometheus.Exemplar{Value: ev.Latency.Seconds(), Labels: labels, Timestamp: now})
	}
}

// onCount returns a count of decisions with its exemplar.
func (x *exemplars) onCount(metric prometheus.Metric, labels []string) prometheus.Metric {
	if x.labels == nil {
		return metric
	}
	if e, ok := x.counts.Load(countOf(labels)); ok {
		return withExemplar(metric, e.(*prometheus.Exemplar))
	}
	return metric
}

// onDurations returns the durations of a source with their exemplars.
func (x *exemplars) onDurations(metric prometheus.Metric, source rule.Source) prometheus.Metric {
	for i := range x.durations[source%maxSources] {
		if e := x.durations[source%maxSources][i].Load(); e != nil {
			metric = withExemplar(metric, e)
		}
	}
	return metric
}

// withExemplar returns a metric with an exemplar, or without it if its labels are invalid.
func withExemplar(metric prometheus.Metric, e *prometheus.Exemplar) prometheus.Metric {
	if m, err := prometheus.NewMetricWithExemplars(metric, *e); err == nil {
		return m
	}
	return metric
}
