package runtime

import (
	"math"
	"sync/atomic"
	"time"
)

// The times in which the averages of a latency go most of the way, 1-1/e, to
// what is measured. The usual one is slow, and slower in going up: an overload
// of an hour has moved it an eighth of the way.
const (
	recentTime = 5 * time.Second
	usualFall  = 4 * time.Hour
	usualRise  = 8 * time.Hour
)

const (
	// aCallsWeight is the most that a single call counts in the recent average,
	// however long the one before is ago.
	aCallsWeight = 1.0 / 8
	// firstLooks is how many looks the usual average takes for a mean on its
	// way down, so that the slow first calls of a program are soon outweighed.
	firstLooks = 300
	// longestCall is what a longer call counts as.
	longestCall = time.Hour
)

// A latency averages how long calls take.
type latency struct {
	sum, calls atomic.Int64 // since the last look, in nanoseconds

	// Only who looks uses these, one at a time.
	recent, usual float64       // in nanoseconds
	looked        time.Duration // when calls were last found
	looks         int           // that found calls
}

// add takes note of a call.
func (a *latency) add(took time.Duration) {
	a.sum.Add(int64(min(max(took, 0), longestCall)))
	a.calls.Add(1)
}

// look returns the averages at a time, 0 if there never was a call. A call
// that is added at the same moment may count half in this look and half in the
// next.
func (a *latency) look(now time.Duration) (recent, usual time.Duration) {
	if calls := float64(a.calls.Swap(0)); calls > 0 {
		a.take(float64(a.sum.Swap(0))/calls, calls, now)
	}
	return time.Duration(a.recent), time.Duration(a.usual)
}

// take averages in the mean of so many calls.
func (a *latency) take(mean, calls float64, now time.Duration) {
	passed := now - a.looked
	a.looked = now
	if a.looks++; a.looks == 1 {
		a.recent, a.usual = mean, mean
		return
	}
	a.recent += min(weight(passed, recentTime), calls*aCallsWeight) * (mean - a.recent)
	switch {
	case a.recent > a.usual:
		a.usual += weight(passed, usualRise) * (a.recent - a.usual)
	case a.looks <= firstLooks:
		a.usual += (a.recent - a.usual) / float64(a.looks)
	default:
		a.usual += weight(passed, usualFall) * (a.recent - a.usual)
	}
}

// weight is what a value that stands for so much time counts in an average
// that goes 1-1/e of the way in the given time.
// (Roberts, "Control chart tests based on geometric moving averages",
// Technometrics 1, 1959.)
func weight(passed, way time.Duration) float64 {
	return -math.Expm1(-float64(passed) / float64(way))
}
