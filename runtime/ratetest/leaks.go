package ratetest

import (
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// reportWait fails the test if a call is about to wait for its turn outside of a
// bubble, and has it go on without the wait.
func (s *store) reportWait(call *terms.Call) {
	if s.bubble {
		return
	}
	longest, rule := time.Duration(0), ""
	for i := range call.Charges {
		if c := &call.Charges[i]; !c.Allowed && !c.Shadow {
			if !asksAgain(c) {
				return // the call is refused
			}
			if rest := min(c.RetryAfter, c.Wait); rest > longest {
				longest, rule = rest, c.Label.Name
			}
		}
	}
	if longest == 0 { // it is admitted
		for i := range call.Charges {
			if c := &call.Charges[i]; !c.Shadow && c.Delay > longest {
				longest, rule = c.Delay, c.Label.Name
			}
		}
	}
	if longest > 0 {
		s.reportWaiting(rule, "for up to "+period(longest))
	}
	s.stay(call)
}

// asksAgain reports whether a limit that refuses a call has it wait and ask again.
func asksAgain(c *terms.Charge) bool {
	if c.Is(algorithm.Lends) {
		return c.Wait > 0 && c.RetryAfter != runtime.Never
	}
	if c.Is(algorithm.Queues) {
		return false // it has taken the wait into account
	}
	return c.Wait > 0 && c.RetryAfter <= c.Wait
}

// stay has a call not wait outside of a bubble, where nothing would wake it.
func (s *store) stay(call *terms.Call) {
	if s.bubble {
		return
	}
	for i := range call.Charges {
		call.Charges[i].Wait, call.Charges[i].Delay = 0, 0
	}
}

func (s *store) reportWaiting(rule, howLong string) {
	if !s.ended {
		s.t.Errorf("ratetest: rule %q has a call wait %s, and no time passes outside of a bubble: make the limiter in synctest.Test", rule, howLong)
	}
}

// checkTime fails the test if a charge was not made by the clock of the test. No
// charge counts as more than a window from the time at which it was made.
func (s *store) checkTime(c *terms.Charge) {
	const far = 2 * rule.MaxWindow
	at := time.UnixMicro(c.At)
	if !s.ended && c.At != 0 && (at.Before(s.begin.Add(-far)) || at.After(s.now().Add(far))) {
		s.t.Errorf("ratetest: rule %q: a decision of %s is settled at %s by the limiter's clock: it was made by another clock, or by another limiter",
			c.Label.Name, at.UTC().Format(time.DateTime), s.now().UTC().Format(time.DateTime))
	}
}
