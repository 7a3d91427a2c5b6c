package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A call with a queue and other limits is charged to the others at its turn, all or none: they count
// calls that go on, and calls in line hold nothing that others could use.

// isDue reports whether an admitted call is to be charged at its turn.
func (c *Tried) isDue() bool {
	for i := range c.Tries {
		if c.Due(i) {
			return true
		}
	}
	return false
}

// Due reports whether the store has left a charge for the turn of the call, or has found no room
// for it then.
func (c *Tried) Due(i int) bool { return isDue(&c.Charges[i], &c.Tries[i]) }

func isDue(o *Charge, t *terms.Charge) bool {
	return (t.Deferred || o.atTurn) && t.At == 0 && t.Cost > 0 && (t.Source == rule.SourceStore || t.Source == rule.SourceLocal)
}

// beginTurn begins a try of the charges that are due, by what holds now, and reports whether there
// are any. Limits that are switched off are left out.
func (e *Engine) beginTurn(ctx context.Context, c *Call, limits []rule.Limit, since time.Duration) (due bool) {
	c.release()
	permits := (*waiting)(c).permits()
	c.Arrived, c.overrides = clock.Now(), e.Plans.Overrides()
	charges, tries := slices.Clone(c.Charges), slices.Clone(c.Tries)
	c.Charges, c.Tries = c.Charges[:0], c.Tries[:0]
	for i := range charges {
		o, t := &charges[i], &tries[i]
		if !isDue(o, t) {
			continue
		}
		limit := &limits[firstLimit(o)]
		p, on, err := e.Plans.Plan(limit)
		if on = on && e.Switch.Enabled(); on && err == nil && o.Limits&(o.Limits-1) == 0 { // of several limits the lowest max holds that did
			o.Plan, o.Key = p, c.Key(p, rule.Engine.PartsOf(limit).Bytes())
		}
		*t = terms.Charge{}
		o.begin(t)
		o.atTurn, t.Wait = true, c.waitLeft(ctx, o.Plan, since)
		c.introduce(o, t)
		due = due || on
		if !on {
			o.Limits = 0
		}
	}
	for _, shadow := range []bool{false, true} { // those in shadow mode stand behind the others
		for i := range charges {
			if charges[i].Limits != 0 && tries[i].Shadow == shadow {
				c.Charges, c.Tries = append(c.Charges, charges[i]), append(c.Tries, tries[i])
			}
		}
	}
	(*waiting)(c).leaveGone(permits)
	return due
}
