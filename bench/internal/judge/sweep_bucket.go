package judge

import "github.com/rategen/rategen/runtime"

// A bucketCheck judges a token bucket, a leaky bucket and a queue: a level
// that drains by max in a window and that no call may raise above the burst.
// That is the same as to say that no interval of any length d holds more than
// burst + d·max/window. In a queue a call must wait until what is before it
// has drained, and for no longer than it may.
//
// It counts in integers, in the 1/window-th part of an event, of which max
// drain in a microsecond: so it never rounds. The scripts count in millionths of
// an event and round a level up, by less than one of them for each charge since
// the bucket was empty. They may refuse what fits by less than that, and name a
// time that is later by as much and a microsecond more; they never admit what
// does not fit.
type bucketCheck struct {
	window, max int64
	burst       int64 // in parts
	wait        int64 // in microseconds; -1: no queue

	level, since int64
	charges      int64 // since the bucket was empty
}

// NewBucketCheck returns a check for a token bucket, a leaky bucket or a queue.
func NewBucketCheck(r *runtime.Rule) Checker {
	c := &bucketCheck{window: r.Window.Microseconds(), max: r.Max, wait: -1}
	if r.Algorithm == runtime.LeakyBucket && r.Wait > 0 {
		c.wait = r.Wait.Microseconds()
	}
	burst := r.Max
	if r.Burst > 0 {
		burst = r.Burst
	} else if c.wait > 0 { // all whose turn comes within the wait
		burst += (c.wait*r.Max + c.window - 1) / c.window
	}
	c.burst = burst * c.window
	return c
}

func (c *bucketCheck) next(r *Record) Fault {
	t, cost := max(r.Clock, c.since), int64(r.Cost)*c.window
	level := max(0, c.level-(t-c.since)*c.max)
	rounded := (c.charges*c.window + 999_999) / 1_000_000
	if level == 0 && c.level-(t-c.since)*c.max+rounded <= 0 {
		c.charges, rounded = 0, 0
	}
	// How many parts have to drain before the call fits.
	excess := level + cost - c.burst
	if c.wait >= 0 {
		excess = max(excess, level-c.wait*c.max)
	}
	lag := t - r.Clock
	if r.Admitted == 0 {
		if excess+rounded < 0 {
			return Spurious
		}
		if r.Wait == 0 || !inRange(int64(r.Wait)-lag, max(1, c.drain(excess)), max(1, c.drain(excess+rounded))) {
			return Wrong
		}
		return 0
	}
	var f Fault
	if excess > 0 {
		f |= Over
	}
	low, high := -lag, -lag
	right := r.At == t
	if c.wait >= 0 {
		low, high = c.drain(level), c.drain(level+rounded)
		right = inRange(r.At-t, c.drain(level+cost), c.drain(level+cost+rounded)) // the end of its turn
	}
	if !right || !inRange(int64(r.Wait)-lag, low, high) {
		f |= Wrong
	}
	c.level, c.since = level+cost, t
	c.charges++
	return f
}

// drain returns how long some parts take to drain, rounded up.
func (c *bucketCheck) drain(parts int64) int64 { return (parts + c.max - 1) / c.max }

// inRange reports whether a time is within bounds, give or take a microsecond.
func inRange(n, low, high int64) bool { return n >= low-1 && n <= high+1 }
