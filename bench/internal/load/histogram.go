package load

import (
	"math/bits"
	"time"
)

const (
	// fine is how many buckets a power of two has: times are kept to 0.8 %.
	fine    = 128
	buckets = 32 * fine
)

// A Histogram counts times, up to about four minutes.
type Histogram struct {
	counts [buckets]uint32
	total  uint64
}

// bucketOf returns which bucket a time belongs to.
func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	exponent := max(bits.Len64(ns)-8, 0)
	return min(exponent*fine+int(ns>>exponent), buckets-1)
}

// bounds returns the shortest time of a bucket, and of the next.
func bounds(bucket int) (low, high float64) {
	exponent := max(bucket/fine-1, 0)
	width := uint64(1) << exponent
	start := uint64(bucket-exponent*fine) * width
	return float64(start), float64(start + width)
}

// Add counts a time.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	if other.total == 0 {
		return
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// Quantile returns the time that a share q of all times, from 0 to 1, does not
// exceed. It is 0 if nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := q * float64(h.total)
	var before float64
	for i, n := range h.counts {
		if n > 0 && before+float64(n) >= rank {
			low, high := bounds(i)
			return time.Duration(low + (high-low)*(rank-before)/float64(n))
		}
		before += float64(n)
	}
	return 0
}
