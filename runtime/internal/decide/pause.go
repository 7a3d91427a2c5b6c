package decide

import (
	"math/bits"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// releasePause is how often a call that is held back asks whether its key was released.
const releasePause = time.Second

// Leave takes the call out of its line.
func (c *Call) Leave() {
	c.turn.Leave()
	c.turn = nil
}

// pass is Leave for a call that needs its permits no more. The next one asks the store at once.
func (c *Call) pass() {
	c.turn.Pass()
	c.turn = nil
}

// Decided takes a call that was decided, or failed to be, out of its line.
func (c *Call) Decided(failed bool) {
	if c.turn != nil && (failed || c.leavesPermits()) {
		c.pass()
	}
	c.Leave()
}

// leavesPermits reports whether an admitted call has left permits for the next call
// in its line, or is no longer bound by them.
func (c *Call) leavesPermits() bool {
	for i := range c.Charges {
		if o := &c.Charges[i]; c.turn.InLine(o.Key, o.DeclaredMax) {
			return c.Tries[i].Remaining > 0 || c.Tries[i].Shadow
		}
	}
	return true
}

// Pause returns how long a denied call waits before it is decided again, and
// whether every limit that denied it allows that wait. A queue has taken the wait
// into account already. It returns 0 if the call waits for permits only: nobody
// knows when they are returned.
func (c *Call) Pause() (longest time.Duration, ok bool) {
	if terms.Admitted(c.Tries) {
		return 0, false
	}
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		if t.Algorithm == terms.Permits {
			if t.Wait <= 0 || t.RetryAfter == Never {
				return 0, false
			}
			continue
		}
		if t.RetryAfter > t.Wait || t.Algorithm == terms.Queue && !t.Blocked {
			return 0, false
		}
		rest := t.RetryAfter
		if t.Blocked && t.Holds {
			rest = min(rest, releasePause)
		}
		longest = max(longest, rest)
	}
	return longest, true
}

// Delay returns how long an admitted call must wait for its turn. A shadow
// queue delays nobody.
func (c *Call) Delay() time.Duration {
	longest := time.Duration(0)
	for i := range c.Tries {
		if t := &c.Tries[i]; !t.Shadow {
			longest = max(longest, t.Delay)
		}
	}
	return longest
}

// hasAdaptive reports whether load scales a limit of the call.
func (c *Call) hasAdaptive() bool {
	for i := range c.Charges {
		if c.Charges[i].Plan.Adapts {
			return true
		}
	}
	return false
}

// longestRule returns the name of the rule for which a call has to wait longest. It is in
// a line for one.
func (c *Call) longestRule() (rule string) {
	longest := time.Duration(-1)
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if c.turn.InLine(o.Key, o.DeclaredMax) {
			return o.Plan.Name
		}
		wait := t.Delay
		if !t.Allowed {
			wait = t.RetryAfter
		}
		if !t.Shadow && wait > longest {
			rule, longest = o.Plan.Name, wait
		}
	}
	return rule
}

// firstLimit returns which limit of the call is the first that a charge is for.
func firstLimit(c *Charge) int { return bits.TrailingZeros8(c.Limits) }
