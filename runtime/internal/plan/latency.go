package plan

import (
	"math"
	"sync/atomic"
	"time"
)

// The times in which the averages of a latency go most of the way, 1-1/e, to
// the measured value. The usual one is slow, and slower in going up: an overload
// of an hour has moved it an eighth of the way.
const (
	recentTime = 5 * time.Second
	usualFall  = 4 * time.Hour
	usualRise  = 8 * time.Hour
)

const (
	// callWeight is the largest weight of a single call in the recent average,
	// however long ago the last call was.
	callWeight = 1.0 / 8
	// firstReads is for how many readings the usual average falls as a mean does,
	// so that the slow first calls of a program are soon outweighed.
	firstReads = 300
	// longestCall is the longest latency that counts; a longer call counts as it.
	longestCall = time.Hour
)

// A Latency averages how long calls take.
type Latency struct {
	sum, calls atomic.Int64 // since the last reading, in nanoseconds

	// One reader at a time uses these.
	recentMean, usualMean float64       // in nanoseconds
	lastTime              time.Duration // instant of the last reading with calls
	reads                 int           // how many readings had calls
}

func (l *Latency) add(took time.Duration) {
	l.sum.Add(int64(min(max(took, 0), longestCall)))
	l.calls.Add(1)
}

// read returns the averages at an instant, 0 if there never was a call. A call
// that is added at the same moment may count half in this reading and half in the
// next.
func (l *Latency) read(now time.Duration) (recent, usual time.Duration) {
	if calls := float64(l.calls.Swap(0)); calls > 0 {
		l.average(float64(l.sum.Swap(0))/calls, calls, now)
	}
	return time.Duration(l.recentMean), time.Duration(l.usualMean)
}

// average averages in the mean of so many calls.
func (l *Latency) average(mean, calls float64, now time.Duration) {
	passed := now - l.lastTime
	l.lastTime = now
	l.reads++
	if l.reads == 1 {
		l.recentMean, l.usualMean = mean, mean
		return
	}
	l.recentMean += min(weight(passed, recentTime), calls*callWeight) * (mean - l.recentMean)
	if l.recentMean > l.usualMean {
		l.usualMean += weight(passed, usualRise) * (l.recentMean - l.usualMean)
	} else if l.reads <= firstReads {
		l.usualMean += (l.recentMean - l.usualMean) / float64(l.reads)
	} else {
		l.usualMean += weight(passed, usualFall) * (l.recentMean - l.usualMean)
	}
}

// weight returns the weight of a value that stands for so much time, in an
// average that goes 1-1/e of the way in the given time.
// (Roberts, "Control chart tests based on geometric moving averages",
// Technometrics 1, 1959.)
func weight(passed, way time.Duration) float64 {
	return -math.Expm1(-float64(passed) / float64(way))
}
