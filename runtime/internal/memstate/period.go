package memstate

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A period is a state that keeps one count until its period of the calendar is over. See
// calendar.lua. The terms of a charge are those of the clock's time, see [terms.Terms.SetClock].
//
//   - at is when the first event of the period was;
//   - from is when the period ends;
//   - count is how much of it is used.
type period state

func (p *period) look(clock int64, c *terms.Charge, v *view) {
	v.at, v.from, v.stop, v.count, v.reset = clock, clock, c.Param, 0, 0
	if clock >= c.Param {
		v.stop = c.More
	}
	if p.kept > 0 && clock < p.from {
		v.at, v.from, v.stop, v.count = max(clock, p.at), p.at, p.from, p.count
		v.reset = p.from - clock
	}
	v.room, v.retry = c.Max-v.count, 0
	if c.Cost > v.room {
		v.retry = v.reset
	}
}

func (p *period) charge(clock int64, c *terms.Charge, v *view) {
	p.at, p.from, p.count = v.from, v.stop, min(v.count+c.Cost, spec.MaxAmount)
	p.kept = p.from
	v.reset, v.delay = p.from-clock, 0
}

func (p *period) refund(clock int64, c *terms.Charge) bool {
	counts := p.kept > 0 && c.At >= p.at && c.At < p.from && clock < p.from
	if counts {
		p.count = max(0, p.count-c.Cost)
		p.kept = p.from
	}
	return counts
}
