package main

import "github.com/rategen/rategen/runtime"

// A bucketCheck judges a token bucket, a leaky bucket and a queue: a level
// that drains by max in a window and that no call may raise above the burst.
// That is the same as to say that no interval of any length d holds more than
// burst + d·max/window. In a queue a call must wait until what is before it
// has drained, and for no longer than it may.
//
// It counts in integers, in the 1/window-th part of an event, of which max
// drain in a microsecond: so it never rounds. The scripts count in floating
// point numbers and may fall to either side when a call fits without the
// smallest of these parts to spare; then neither is a fault, and a wait may
// be a microsecond longer or shorter.
type bucketCheck struct {
	window, max int64
	burst       int64 // in parts
	wait        int64 // in microseconds; -1: no queue

	level, since int64
}

func newBucketCheck(r *runtime.Rule) checker {
	c := &bucketCheck{window: r.Window.Microseconds(), max: r.Max, wait: -1}
	if r.Algorithm == runtime.LeakyBucket && r.Wait > 0 {
		c.wait = r.Wait.Microseconds()
	}
	burst := r.Max
	switch {
	case r.Burst > 0:
		burst = r.Burst
	case c.wait > 0: // no longer than the wait
		burst += c.wait * r.Max / c.window
	}
	c.burst = burst * c.window
	return c
}

func (c *bucketCheck) next(r *record) fault {
	t, cost := max(r.Clock, c.since), int64(r.Cost)*c.window
	level := max(0, c.level-(t-c.since)*c.max)
	// How many parts have to drain before the call fits.
	excess := level + cost - c.burst
	if c.wait >= 0 {
		excess = max(excess, level-c.wait*c.max)
	}
	if r.Admitted == 0 {
		switch exact := t + max(1, c.drain(excess)) - r.Clock; {
		case excess < 0:
			return spurious
		case !near(int64(r.Wait), exact) || r.Wait == 0:
			return wrong
		}
		return 0
	}
	var f fault
	if excess > 0 {
		f |= over
	}
	delay := int64(0)
	if c.wait >= 0 {
		delay = t + c.drain(level) - r.Clock
	}
	if r.At != t || !near(int64(r.Wait), delay) {
		f |= wrong
	}
	c.level, c.since = level+cost, t
	return f
}

// drain returns how long some parts take to drain, rounded up.
func (c *bucketCheck) drain(parts int64) int64 { return (parts + c.max - 1) / c.max }

func near(a, b int64) bool { return a-b <= 1 && b-a <= 1 }
