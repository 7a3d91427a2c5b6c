package report

import (
	"sync/atomic"
	"time"
)

// interval is the least time between two log lines of one rule and kind.
const interval = time.Second

// A Throttle lets one line pass in every interval.
type Throttle struct {
	last    lastLine
	skipped atomic.Int64
}

// Due reports whether a line may be written at an instant, and how many lines
// were left out since the last one.
func (t *Throttle) Due(now time.Duration) (skipped int64, ok bool) {
	if !t.last.due(now) {
		t.skipped.Add(1)
		return 0, false
	}
	return t.skipped.Swap(0), true
}

// A lastLine is the instant of the last line; 0: there was none.
type lastLine struct{ time atomic.Int64 }

func (l *lastLine) due(now time.Duration) bool {
	// A call that arrived later may get here first.
	last := l.time.Load()
	return (last == 0 || (now-time.Duration(last)).Abs() >= interval) && l.time.CompareAndSwap(last, int64(now))
}

// A Once lets each line pass once. Of 64 lines that are declared in a row no two are taken for one.
type Once struct{ passed atomic.Uint64 }

// Due reports whether a line has not passed.
func (o *Once) Due(l Line) bool { return o.passed.Load()&l.bit() == 0 }

// First reports whether a line passes.
func (o *Once) First(l Line) bool { return o.Due(l) && o.passed.Or(l.bit())&l.bit() == 0 }

func (l Line) bit() uint64 { return 1 << (l.number % 64) }

// A StripedThrottle is a Throttle for what happens on all processors at once. They
// would wait for each other if they counted in one place, so each caller counts in
// its stripe, which is any number.
type StripedThrottle struct {
	last    lastLine
	_       [56]byte
	skipped [8]struct {
		atomic.Int64
		_ [56]byte // keeps the cache lines of two stripes apart
	}
}

// Due is that of a Throttle, for a caller with a stripe.
func (t *StripedThrottle) Due(now time.Duration, stripe uint32) (skipped int64, ok bool) {
	if !t.last.due(now) {
		t.skipped[stripe%uint32(len(t.skipped))].Add(1)
		return 0, false
	}
	for i := range t.skipped {
		skipped += t.skipped[i].Swap(0)
	}
	return skipped, true
}
