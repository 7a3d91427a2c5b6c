package ratepage

import (
	"math"
	"testing"
	"time"
)

// TestLatencyBuckets wants every time to fall into a bucket that it is in.
func TestLatencyBuckets(t *testing.T) {
	t.Parallel()
	last := 0
	for us := int64(0); us < 1<<31; us += 1 + us/50 {
		b := latencyBucket(time.Duration(us) * time.Microsecond)
		if b < last || float64(us) < bucketStart(b) || float64(us) >= bucketStart(b+1) {
			t.Fatalf("%d µs in bucket %d, of %v to %v", us, b, bucketStart(b), bucketStart(b+1))
		}
		last = b
	}
	if b := latencyBucket(-time.Second); b != 0 {
		t.Error(b)
	}
	if b := latencyBucket(math.MaxInt64); b != latencyBuckets-1 {
		t.Error(b)
	}
}

// TestLatencies wants percentiles of the last samples, within a fifth.
func TestLatencies(t *testing.T) {
	t.Parallel()
	var l latencies
	for i := range 1000 {
		l.add(time.Duration(i) * time.Millisecond)
	}
	l.sample()
	v := l.view()
	for got, want := range map[float64]float64{v.P50: 500e3, v.P95: 950e3, v.P99: 990e3} {
		if math.Abs(got-want) > want/5 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for range latencyWindow {
		l.sample()
	}
	if v := l.view(); v != (latencyView{}) {
		t.Errorf("after %d samples: %+v", latencyWindow, v)
	}
	l.add(time.Second)
	l.restart()
	if v := l.view(); v != (latencyView{}) {
		t.Errorf("after a restart: %+v", v)
	}
}
