package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A call with a queue and other limits is charged to the others at its turn, all or none: they count
// calls that go on, and calls in line hold nothing that others could use.

// Deferred reports whether an admitted call is to be charged at its turn.
func (c *Call) Deferred() bool {
	for i := range c.Tries {
		if c.Due(i) {
			return terms.Admitted(c.Tries)
		}
	}
	return false
}

// Due reports whether the store has left a charge for the turn of the call, or has found no room
// for it then.
func (c *Call) Due(i int) bool { return isDue(&c.Charges[i], &c.Tries[i]) }

func isDue(o *Charge, t *terms.Charge) bool {
	return (t.Deferred || o.atTurn) && t.At == 0 && t.Cost > 0 && t.Source == rule.SourceStore
}

// LeftQueue reports whether the call has left a queue before its turn.
func (c *Call) LeftQueue() bool { return c.leftQueue }

// TakeTurn has an admitted call wait for its turn, and then makes the charges that count from then
// on. Without room it waits for permits in their line. For other room it needs a new place in
// the queue, which TakeTurn reports, unless its rules let it wait no longer. The call has waited
// since an instant. The error is that of a wait, or of [Engine.Ask].
func (e *Engine) TakeTurn(ctx context.Context, c *Call, limits []rule.Limit, since time.Duration) (again bool, err error) {
	if err = c.AwaitTurn(ctx, limits); err != nil {
		c.leftQueue = true
		return false, err
	}
	for i := range c.Tries {
		c.Tries[i].Delay = 0
	}
	for c.Again = true; ; {
		if !c.beginTurn(ctx, limits, since) {
			return false, nil
		}
		if Unsatisfiable(c.Charges) {
			denyForever(c.Charges, c.Tries)
			return false, nil
		}
		if err = e.Ask(ctx, c); err != nil {
			return false, err
		}
		w, waits := c.lack()
		if !waits {
			return false, nil
		}
		if !c.Tries[w.charge].Algorithm.Is(algorithm.Lends) {
			return true, nil
		}
		if waits, err = c.Await(ctx, limits); err != nil || !waits {
			return false, err
		}
	}
}

// beginTurn begins a try of the charges that are due, by what holds now, and reports whether there
// are any. Limits that are switched off are left out.
func (c *Call) beginTurn(ctx context.Context, limits []rule.Limit, since time.Duration) (due bool) {
	c.Arrived, c.Overrides = clock.Now(), c.Plans.Overrides()
	charges, tries := slices.Clone(c.Charges), slices.Clone(c.Tries)
	c.Charges, c.Tries = c.Charges[:0], c.Tries[:0]
	for i := range charges {
		o, t := &charges[i], &tries[i]
		if !isDue(o, t) {
			continue
		}
		limit := &limits[firstLimit(o)]
		p, on, err := c.Plans.Plan(limit)
		if on = on && c.Switch.Enabled(); on && err == nil && o.Limits&(o.Limits-1) == 0 { // of several limits the lowest max holds that did
			o.Plan, o.Key = p, c.Key(p, rule.PartsOf(limit).Bytes())
		}
		*t = terms.Charge{}
		o.Plan.Charge(t, o.Key, o.Cost)
		o.atTurn, t.Wait = true, c.waitLeft(ctx, o.Plan, since)
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
	return due
}
