package rateprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rategen/rategen/internal/ratetally"
)

// metric returns the durations as a metric that is a classic histogram and a native
// one at once. Each scrape takes what its format and its server support.
func (h *durations) metric(desc *prometheus.Desc, created time.Time, labels ...string) (prometheus.Metric, error) {
	buckets, sparse := map[float64]uint64{}, map[int]int64{}
	var count, zero uint64
	for i, c := range cells {
		n := h.counts[i].Load()
		for j := c.classic; j < len(ratetally.DurationBounds); j++ {
			buckets[ratetally.DurationBounds[j]] += n
		}
		if c.native == nativeLowest {
			zero += n
		} else if n > 0 {
			sparse[c.native] += int64(n)
		}
		count += n
	}
	sum := time.Duration(h.sum.Load()).Seconds()
	classic, err := prometheus.NewConstHistogram(desc, count, sum, buckets, labels...)
	if err != nil {
		return nil, err
	}
	threshold := cells[0].upTo.Seconds()
	native, err := prometheus.NewConstNativeHistogram(desc, count, sum, sparse, nil, zero, nativeSchema, threshold, created, labels...)
	if err != nil {
		return nil, err
	}
	return &histogram{classic, native}, nil
}

// A histogram is a metric of two forms.
type histogram struct {
	prometheus.Metric // classic
	native            prometheus.Metric
}

// Write implements [prometheus.Metric].
func (h *histogram) Write(out *dto.Metric) error {
	if err := h.native.Write(out); err != nil {
		return err
	}
	var classic dto.Metric
	if err := h.Metric.Write(&classic); err != nil {
		return err
	}
	out.Histogram.Bucket = classic.Histogram.Bucket
	return nil
}
