package ledger

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// setWindow has what renews or settles a reservation count by the window of other calls, for which its period goes on
// longer, or ends sooner, than when it was charged.
func (p *permit) setWindow(c *terms.Charge) {
	if p.plan.Numbers.Period == nil {
		c.Window = p.counted
	}
}

// follow has a reservation count by a window, in microseconds, which an override may have changed.
func (p *permit) follow(window int64) {
	if p.plan.Numbers.Period == nil {
		p.periodEnd += terms.Micros(window - p.counted)
		p.counted = window
	}
}

// followWindows has reservations count by the windows that are in force.
func (p *Permits) followWindows() {
	var all []*permit
	p.mu.Lock()
	if p.ledger.Plans.Overrides() != nil {
		for _, m := range p.held {
			if m.reserved() {
				all = append(all, m)
			}
		}
	}
	p.mu.Unlock()
	for _, m := range all { // overrides that do not fit are told to observers
		window := p.ledger.Plans.WindowInForce(m.plan, []byte(m.key))
		p.mu.Lock()
		if p.held[m.permitID] == m {
			m.follow(window)
		}
		p.mu.Unlock()
	}
}

// noteRecharge notes that a reservation was charged again by a number. A call that is over by
// now has settled the one before, so that this one is to be given back.
func (p *Permits) noteRecharge(m *permit, number int64, now time.Duration) {
	if p.held[m.permitID] == m {
		m.number = number
		return
	}
	again := *m
	again.chargeTime, again.number, again.correction = number, number, -m.cost
	again.due, again.retryEnd = now, now+m.window()
	p.returns[again.permitID] = &again
}
