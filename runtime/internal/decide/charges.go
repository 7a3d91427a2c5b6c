package decide

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Place puts a charge behind all others if its limit is in shadow mode, and else before those
// that are. Of charges on one key there is one: a limit in shadow mode is left out, of which
// leftOut hears with the other one. Two that enforce are one charge: it returns the one that is
// there, and has not placed the new one.
func (c *Call) Place(charge Charge, leftOut func(shadow, other *plan.Plan)) (same *Charge) {
	at := 0 // behind the last charge that is not in shadow mode
	for i := 0; i < len(c.Charges); i++ {
		o := &c.Charges[i]
		same := bytes.Equal(o.Key, charge.Key)
		switch {
		case same && charge.Plan.Terms.Shadow:
			leftOut(charge.Plan, o.Plan)
			return nil
		case same && o.Plan.Terms.Shadow:
			leftOut(o.Plan, charge.Plan)
			c.Charges = slices.Delete(c.Charges, i, i+1)
			i--
			continue
		case same:
			return o
		}
		if !o.Plan.Terms.Shadow || charge.Plan.Terms.Shadow {
			at = i + 1
		}
	}
	c.Charges = slices.Insert(c.Charges, at, charge)
	return nil
}

// limitWait sets how long each charge of a try may still wait when the call has waited since an
// instant.
func (c *Call) limitWait(ctx context.Context, since time.Duration) {
	for i := range c.Tries {
		t, p := &c.Tries[i], c.Charges[i].Plan
		t.Wait = c.waitLeft(ctx, p, since)
		if p.Queues() {
			t.More = t.Wait.Microseconds()
		}
	}
	c.Defer()
}

// Defer has the store leave all charges beside a queue for the call's turn, unless that is now.
func (c *Call) Defer() {
	for i := 0; c.enforcesQueue() && i < len(c.Tries); i++ {
		t := &c.Tries[i]
		t.Deferred = t.Shadow || !t.Algorithm.Is(algorithm.Queues)
	}
}

// waitLeft returns how long a try may wait by a plan: the rest of its Wait, or of the time until the
// context's deadline if that is shorter.
func (c *Call) waitLeft(ctx context.Context, p *plan.Plan, since time.Duration) time.Duration {
	left := max(0, p.Wait-(c.Arrived-since))
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, max(0, clock.At(deadline)-c.Arrived))
	}
	return left
}

// enforcesQueue reports whether the call waits for its turn in a queue.
func (c *Call) enforcesQueue() bool {
	return slices.ContainsFunc(c.Tries, func(t terms.Charge) bool { return t.Algorithm.Is(algorithm.Queues) && !t.Shadow })
}

// Waits reports whether any rule of the call lets it wait.
func (c *Call) Waits() bool {
	for i := range c.Charges {
		if c.Charges[i].Plan.Wait > 0 {
			return true
		}
	}
	return false
}

// Tightest returns which charge of a call matters most to the caller: one that denies comes
// before one that does not, and one in shadow mode comes last.
func Tightest(tries []terms.Charge) (tightest int) {
	for i := 1; i < len(tries); i++ {
		if isTighter(&tries[i], &tries[tightest]) {
			tightest = i
		}
	}
	return tightest
}

func isTighter(c, o *terms.Charge) bool {
	if c.Shadow != o.Shadow {
		return !c.Shadow
	}
	if c.Allowed && o.Allowed {
		return c.Remaining < o.Remaining
	}
	return c.RetryAfter > o.RetryAfter
}
