package memstate

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A period is a state that keeps one count until its period of the calendar is over. See
// calendar.lua. The terms of a charge are those of the clock's time, see [terms.Terms.SetClock].
//
//   - time is when the first event of the period was;
//   - bound is when the period ends;
//   - count is how much of it is used.
type period state

func (p *period) look(clock int64, c *terms.Charge, v *view) {
	v.time, v.bound, v.end, v.count, v.reset = clock, clock, c.Param, 0, 0
	if clock >= c.Param {
		v.end = c.More
	}
	if p.dropTime > 0 && clock < p.bound {
		v.time, v.bound, v.end, v.count = max(clock, p.time), p.time, p.bound, p.count
		v.reset = p.bound - clock
	}
	v.room, v.retry = c.Max-v.count, 0
	if c.Cost > v.room {
		v.retry = v.reset
	}
}

func (p *period) charge(clock int64, c *terms.Charge, v *view) {
	p.time, p.bound, p.count = v.bound, v.end, min(v.count+c.Cost, spec.MaxAmount)
	p.dropTime = p.bound
	v.reset, v.delay = p.bound-clock, 0
}

func (p *period) refund(clock int64, c *terms.Charge) bool {
	counts := p.dropTime > 0 && c.At >= p.time && c.At < p.bound && clock < p.bound
	if counts {
		p.count = max(0, p.count-c.Cost)
		p.dropTime = p.bound
	}
	return counts
}
