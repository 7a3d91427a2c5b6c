package rateprom_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestDurations compares the durations with a histogram of client_golang's that has
// observed the same ones: around every bound, and random ones of every magnitude.
func TestDurations(t *testing.T) {
	registry, classic := prometheus.NewRegistry(), []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}
	o := observer(t, registry)
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "theirs", Buckets: classic, NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: 953e-9,
	})
	var all []time.Duration
	random := rand.New(rand.NewPCG(1, 1))
	for key := -130; key <= 80; key++ {
		bound := time.Duration(math.Exp2(float64(key)/8) * 1e9)
		all = append(all, bound-1, bound, bound+1)
	}
	for _, bound := range classic {
		d := time.Duration(math.Round(bound * 1e9))
		all = append(all, d-1, d, d+1)
	}
	for range 20_000 {
		all = append(all, time.Duration(math.Exp2(random.Float64()*26)*10_000))
	}
	for _, d := range all {
		if d < 10*time.Microsecond || d > 1024*time.Second {
			continue
		}
		theirs.Observe(d.Seconds())
		o.Decision(t.Context(), observe.DecisionEvent{Rule: "a", Source: rule.SourceStore, Latency: d})
	}
	// None of these waited for a store.
	o.Decision(t.Context(), observe.DecisionEvent{Rule: "a", Source: rule.SourceStore, Latency: 9 * time.Microsecond})
	o.Decision(t.Context(), observe.DecisionEvent{Rule: "a", Source: rule.SourceRecalled, Latency: time.Second})

	var want dto.Metric
	if err := theirs.Write(&want); err != nil {
		t.Fatal(err)
	}
	got := durationsOf(t, registry, "store")
	if diff := cmp.Diff(want.Histogram, got, protocmp.Transform(), protocmp.IgnoreFields(&dto.Histogram{}, "created_timestamp", "sample_sum")); diff != "" {
		t.Errorf("client_golang's histogram (-) and ours (+):\n%s", diff)
	}
	if a, b := want.Histogram.GetSampleSum(), got.GetSampleSum(); math.Abs(a-b) > a/1e9 {
		t.Errorf("the sum is %v, want %v", b, a)
	}
	// Beyond the last bucket a duration is still counted.
	o.Decision(t.Context(), observe.DecisionEvent{Rule: "a", Source: rule.SourceStore, Latency: math.MaxInt64})
	if n := durationsOf(t, registry, "store").GetSampleCount(); n != got.GetSampleCount()+1 {
		t.Errorf("%d durations, want one more than %d", n, got.GetSampleCount())
	}
}

// durationsOf returns the histogram of a source.
func durationsOf(t *testing.T, g prometheus.Gatherer, source string) *dto.Histogram {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "rategen_decision_duration_seconds" && m.Label[0].GetValue() == source {
				return m.Histogram
			}
		}
	}
	t.Fatalf("no durations of %q", source)
	return nil
}
