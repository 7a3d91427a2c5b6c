package judge

import "github.com/rategen/rategen/runtime"

// A fixedCheck judges a fixed window: it starts with an event, and has to
// admit a call if and only if it and the call together hold no more than max.
type fixedCheck struct {
	window, max int64

	started     bool
	start, used int64
}

// NewFixedCheck returns a check for a fixed window.
func NewFixedCheck(r *runtime.Rule) Checker {
	return &fixedCheck{window: r.Window.Microseconds(), max: r.Max}
}

func (c *fixedCheck) next(r *Record) Fault {
	t, cost := r.Clock, int64(r.Cost)
	open := c.started && t < c.start+c.window
	used := int64(0)
	if open {
		t, used = max(t, c.start), c.used
	}
	if r.Admitted == 0 {
		switch {
		case used+cost <= c.max:
			return Spurious
		case int64(r.Wait) != c.start+c.window-r.Clock:
			return Wrong
		}
		return 0
	}
	var f Fault
	if used+cost > c.max {
		f |= Over
	}
	if r.At != t || r.Wait != 0 {
		f |= Wrong
	}
	if !open {
		c.started, c.start = true, t
	}
	c.used = used + cost
	return f
}
