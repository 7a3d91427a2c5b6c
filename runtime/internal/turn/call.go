package turn

import (
	"math/bits"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// releasePause is how often a call that is held back asks whether its key was released.
const releasePause = time.Second

// A Call is one that may wait, in memory that may be used again.
type Call struct {
	decide.Call
	// Permits has the lines for them.
	Permits *permit.Permits
	// Listener learns that the call waits.
	Listener Listener
	// Polls says that limits may be switched off, and that nobody tells when.
	Polls bool
	// Overrides were in force when the charges were made.
	Overrides Overrides

	turn  *permit.Turn  // in a line for permits, or nil
	since time.Duration // the instant at which it began to wait; 0: it has not waited
	rule  string        // the rule that kept it for longest then
}

// Clear makes the call one without charges. It keeps its place in a line, and goes on to wait.
func (c *Call) Clear() {
	again := c.Again
	c.Call.Clear()
	c.Again = again
}

// Leave takes the call out of its line. If ask is true the next one asks the store at once.
func (c *Call) Leave(ask bool) {
	if c.turn != nil {
		c.turn.Leave(ask)
		c.turn = nil
	}
}

// Decided takes a call that was decided, or failed to be, out of its line.
func (c *Call) Decided(failed bool) {
	if c.turn != nil {
		c.Leave(failed || c.leftOver())
	}
}

// leftOver reports whether an admitted call has left permits for the next call
// in its line, or is no longer bound by them.
func (c *Call) leftOver() bool {
	for i := range c.Charges {
		if o := &c.Charges[i]; c.turn.For(o.Key, o.Own) {
			return c.Tries[i].Remaining > 0 || c.Tries[i].Shadow
		}
	}
	return true
}

// Pause returns how long a denied call waits before it is decided again, and
// whether every limit that denied it allows that wait. A queue has taken the wait
// into account already. It returns 0 if the call waits for permits only: nobody
// knows when they are returned.
func (c *Call) Pause() (time.Duration, bool) {
	longest := time.Duration(0)
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		if t.Algorithm == terms.Permits {
			if t.Wait <= 0 || t.RetryAfter == decide.Never {
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

// adapts reports whether load scales a limit of the call.
func (c *Call) adapts() bool {
	for i := range c.Charges {
		if c.Charges[i].Plan.Adapts {
			return true
		}
	}
	return false
}

// keptBy returns the name of the rule for which a call has to wait longest. It is in
// a line for one.
func (c *Call) keptBy() (rule string) {
	longest := time.Duration(-1)
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if c.turn.For(o.Key, o.Own) {
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

// limitOf returns which limit of the call is the first that a charge is for.
func limitOf(c *decide.Charge) int { return bits.TrailingZeros8(c.Limits) }
