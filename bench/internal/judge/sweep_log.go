package judge

import "github.com/rategen/rategen/runtime"

// A logCheck judges a sliding log, and a counter whose buckets are some time
// wide. It keeps the time of every event that may still count and knows no
// better way than to look.
//
// The window is (t-W, t], where t is the clock of Redis, but never before the
// newest event. A log has to admit a call if and only if the window and the
// call together hold no more than max. Of a counter no window may hold more
// either, and it has to admit a call if that is so of the longer window
// (t-W-width, t].
type logCheck struct {
	window, max int64
	width       int64 // 0: a log

	events  []event // ascending, from those in the longer window on
	inside  int64   // cost of the events in the window
	long    int64   // cost of the events in the longer window
	head    int     // the first event in the longer window
	entered int     // the first event in the window
}

type event struct{ at, cost int64 }

// NewLogCheck returns a check for a sliding log.
func NewLogCheck(r *runtime.Rule) Checker {
	return &logCheck{window: r.Window.Microseconds(), max: r.Max}
}

// NewCounterCheck returns checks for counters of n buckets or more.
func NewCounterCheck(n int64) func(*runtime.Rule) Checker {
	return func(r *runtime.Rule) Checker {
		window := r.Window.Microseconds()
		return &logCheck{window: window, max: r.Max, width: (window + n - 1) / n}
	}
}

func (c *logCheck) next(r *Record) Fault {
	t, cost := r.Clock, int64(r.Cost)
	if n := len(c.events); n > 0 {
		t = max(t, c.events[n-1].at)
	}
	c.leave(t)
	var f Fault
	if r.Admitted == 0 {
		if c.long+cost <= c.max {
			return Spurious
		}
		if !c.retryOK(r) {
			f = Wrong
		}
		return f
	}
	if c.inside+cost > c.max {
		f |= Over
	}
	// A charge counts as of now, or until its bucket ends.
	if r.Wait != 0 || r.At < t || r.At > t+max(0, c.width-1) {
		f |= Wrong
	}
	c.events = append(c.events, event{t, cost})
	c.inside += cost
	c.long += cost
	return f
}

// leave lets the events go that have left the windows by t.
func (c *logCheck) leave(t int64) {
	for c.entered < len(c.events) && c.events[c.entered].at <= t-c.window {
		c.inside -= c.events[c.entered].cost
		c.entered++
	}
	for c.head < len(c.events) && c.events[c.head].at <= t-c.window-c.width {
		c.long -= c.events[c.head].cost
		c.head++
	}
	// What has left both windows goes, but the newest event stays: time never
	// runs before it.
	if gone := min(c.head, len(c.events)-1); gone > 1<<16 {
		c.events = append(c.events[:0], c.events[gone:]...)
		c.head -= gone
		c.entered -= gone
	}
}

// retryOK reports whether a denied call is told to come back just when enough
// events have left, or within the width of a bucket after that.
func (c *logCheck) retryOK(r *Record) bool {
	inside, i := c.long, c.head
	for inside+int64(r.Cost) > c.max {
		if i == len(c.events) {
			return false
		}
		inside -= c.events[i].cost
		i++
	}
	exact := c.events[i-1].at + c.window - r.Clock
	late := int64(r.Wait) - exact
	return r.Wait > 0 && late >= 0 && late <= max(0, c.width-1)
}
