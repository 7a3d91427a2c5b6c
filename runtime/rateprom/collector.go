package rateprom

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/runtime/observe"
)

// A collector turns a tally into metrics when it is scraped.
type collector struct {
	tally     *ratetally.Tally
	created   time.Time
	durations [maxSources]durations
	exemplars exemplars
	observer  *observe.Observer

	descs    map[*ratetally.Family]*prometheus.Desc
	duration *prometheus.Desc
}

// maxSources is a power of two, so that a mask keeps a source within an array.
const maxSources = 8

func newCollector(opts []Option) *collector {
	c := &collector{tally: ratetally.New(), created: time.Now(), descs: map[*ratetally.Family]*prometheus.Desc{}, duration: descOf(ratetally.Duration)}
	for _, f := range ratetally.Families {
		c.descs[f] = descOf(f)
	}
	for _, opt := range opts {
		opt(c)
	}
	c.observer = c.tally.Observer()
	c.observer.Decision = c.decided
	return c
}

// descOf describes a family.
func descOf(f *ratetally.Family) *prometheus.Desc {
	name := strings.ReplaceAll(f.Name, ".", "_")
	switch f.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if f.Kind == ratetally.Counter {
		name += "_total"
	}
	return prometheus.NewDesc(name, f.Help, f.Labels, nil)
}

func (c *collector) decided(ctx context.Context, ev observe.DecisionEvent) {
	rule := c.tally.Decided(&ev)
	if ratetally.Waited(&ev) {
		c.durations[ev.Source%maxSources].add(ev.Latency)
	}
	if c.exemplars.labels != nil {
		c.exemplars.decided(ctx, rule, &ev)
	}
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range ratetally.Families {
		descs <- c.descs[f]
	}
	descs <- c.duration
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.tally.Collect(func(f *ratetally.Family, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if f.Kind == ratetally.Counter {
			kind = prometheus.CounterValue
		}
		metric, err := prometheus.NewConstMetric(c.descs[f], kind, value, labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(c.descs[f], err)
		} else if f == ratetally.Decisions {
			metric = c.exemplars.onCount(metric, labels)
		}
		metrics <- metric
	})
	for _, source := range ratetally.Waits {
		metric, err := c.durations[source].metric(c.duration, c.created, source.String())
		if err != nil {
			metric = prometheus.NewInvalidMetric(c.duration, err)
		} else {
			metric = c.exemplars.onDurations(metric, source)
		}
		metrics <- metric
	}
}
