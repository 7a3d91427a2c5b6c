package ratetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rategen/rategen/runtime/observe"
)

// A Check compares what was decided about a rule with what a test expects. Each
// method fails the test if they differ, with a list of what has happened, and returns
// the Check for more. All calls since [New] count.
type Check struct {
	limiter *Limiter
	rule    string
}

// Check begins the checks of a rule, by its name in errors and logs. A name that no
// call has met and no constructor has registered fails the test, and so does a Check of which no
// method is called.
func (l *Limiter) Check(rule string) *Check {
	l.store.t.Helper()
	names := l.names()
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.checked[rule]; !known {
		s.checked[rule] = false // until a method says what is expected
	}
	if !names[rule] {
		s.t.Errorf("ratetest: there is no rule %q; %s%s", rule, known(names), s.history())
	}
	return &Check{l, rule}
}

// NothingElse fails the test if calls have met a rule that [Limiter.Check] was not
// called for.
func (l *Limiter) NothingElse() {
	s := l.store
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range slices.Sorted(maps.Keys(s.rules)) {
		if !s.checked[rule] {
			s.t.Errorf("ratetest: calls have met rule %q too, which was not checked\n%s", rule, s.history())
		}
	}
}

// want compares what has happened with what is expected.
func (c *Check) want(compare func(happened *tally) (difference string)) *Check {
	s := c.limiter.store
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked[c.rule] = true
	happened := s.rules[c.rule]
	if happened == nil {
		happened = &tally{}
	}
	if difference := compare(happened); difference != "" {
		s.t.Errorf("ratetest: rule %q: %s\n%s", c.rule, difference, s.history())
	}
	return c
}

// Admitted checks how many calls the limit let pass, those included that its failure
// policy let pass.
func (c *Check) Admitted(n int) *Check {
	c.limiter.store.t.Helper()
	return c.Verdict(observe.VerdictAdmitted, n)
}

// Refused checks how many calls the limit refused.
func (c *Check) Refused(n int) *Check {
	c.limiter.store.t.Helper()
	return c.Verdict(observe.VerdictRefused, n)
}

// Verdict checks how many calls had this outcome.
func (c *Check) Verdict(v observe.Verdict, n int) *Check {
	c.limiter.store.t.Helper()
	return c.want(func(happened *tally) string {
		if got := happened.verdicts[v]; got != n {
			return fmt.Sprintf("%d calls were %v, want %d", got, v, n)
		}
		return ""
	})
}

// Cost checks how much the calls were charged together. What was refunded does not
// count, what was settled counts as settled, and permits count while they are held. A
// call that the limiter decided alone, because its rule fails locally, counts as it was
// charged at first.
func (c *Check) Cost(n int64) *Check {
	c.limiter.store.t.Helper()
	return c.want(func(happened *tally) string {
		if happened.cost != n {
			return fmt.Sprintf("the calls cost %d, want %d", happened.cost, n)
		}
		return ""
	})
}

// Keys checks by which keys the calls were counted, refused ones included, in any
// order. A key reads as after the prefix in Redis: its parts are escaped and joined by
// colons, see [runtime.Key].
func (c *Check) Keys(keys ...string) *Check {
	c.limiter.store.t.Helper()
	return c.want(func(happened *tally) string {
		got, want := slices.Sorted(maps.Keys(happened.keys)), slices.Compact(slices.Sorted(slices.Values(keys)))
		if !slices.Equal(got, want) {
			return fmt.Sprintf("the keys are %q, want %q", got, want)
		}
		return ""
	})
}
