package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	last := -1
	for ns := time.Duration(0); ns < 100*time.Second; ns += 1 + ns/300 {
		b := bucketOf(ns)
		if low, high := bounds(b); float64(ns) < low || float64(ns) >= high {
			t.Fatalf("%d ns is in bucket %d, which is for %.0f to %.0f", ns, b, low, high)
		}
		if b != last && b != last+1 {
			t.Fatalf("%d ns is in bucket %d, after %d", ns, b, last)
		}
		last = b
	}
	if b := bucketOf(time.Hour); b != buckets-1 {
		t.Errorf("an hour is in bucket %d of %d", b, buckets)
	}
	if b := bucketOf(-1); b != 0 {
		t.Errorf("a clock that runs back gives bucket %d", b)
	}
}

func TestQuantile(t *testing.T) {
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var one, two, all Histogram
	var times []time.Duration
	for i := range 20_000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		times = append(times, d)
		if all.Add(d); i%3 == 0 {
			one.Add(d)
		} else {
			two.Add(d)
		}
	}
	slices.Sort(times)
	one.Merge(&two)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want := times[min(int(q*float64(len(times))), len(times)-1)]
		got := one.Quantile(q)
		if off := float64(got-want) / float64(want); off < -0.01 || off > 0.01 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
		if got != all.Quantile(q) {
			t.Errorf("quantile %v: merged %v, counted together %v", q, got, all.Quantile(q))
		}
	}
}
