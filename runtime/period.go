package runtime

import (
	"errors"
	"fmt"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
)

// A Period is a period of the calendar, in a time zone. It begins at the first instant of
// its local date: midnight, unless the zone skips it. Days of 23 and 25 hours are whole
// periods.
//
// The clock of the store decides in which period a call falls. A period that has begun for
// a key ends when it was to end then, whatever Zone and Anchor the calls after that bring:
// these hold for the next one, so that nobody has a second budget by changing them.
//
// Programs need the zone table of their system for it, or import time/tzdata.
type Period uint8

const (
	// NoPeriod leaves the time to the Window of a rule.
	NoPeriod Period = iota
	Day
	Week
	Month
	Year
)

// String returns the period as the directive spells it.
func (p Period) String() string {
	if p == NoPeriod {
		return "none"
	}
	return spec.Unit(p).String()
}

// WithPeriod returns the limit with a time zone and an anchor in place of the rule's, as in
// [Rule], of a rule with a Period. Anchor 0 is Sunday in a week, as in package time, and
// else none that a caller can have. The key of the limit becomes invalid, as by
// [Key.AddInvalid], if there is no such zone or anchor. The failure policy decides such calls,
// so check a zone that a caller may choose, or have the rule fail closed.
func (l Limit) WithPeriod(zone string, anchor int64) Limit {
	if l.rule == nil || l.rule.Period == NoPeriod {
		return l
	}
	unit := spec.Unit(l.rule.Period)
	if anchor == 0 && unit == spec.Week {
		anchor = 7
	}
	if anchor == 0 && unit != spec.Day {
		l.key.AddInvalid(fmt.Sprintf("the anchor of a %v is 0", unit))
		return l
	}
	p, err := calendar.Of(unit, zone, int(max(-1, min(anchor, 9999)))) // as no anchor is
	if err != nil {
		l.key.AddInvalid("the time zone or the anchor of a period is none") // which may be a caller's
		return l
	}
	l.period = p
	return l
}

// period returns the rule's period, or nil.
func (r *Rule) period() (*calendar.Period, error) {
	switch {
	case r.Period == NoPeriod && (r.Zone != "" || r.Anchor != 0):
		return nil, errors.New("a zone and an anchor are those of a period: set Period, or leave them out")
	case r.Period == NoPeriod:
		return nil, nil
	case r.Window != 0:
		return nil, fmt.Errorf("the calendar says how long a %v is: leave the window out", r.Period)
	}
	return calendar.Of(spec.Unit(r.Period), r.Zone, r.Anchor)
}

// A Debt says what becomes of what calls turn out to cost beyond the Max of a rule.
type Debt uint8

const (
	// DebtDefault is DebtRefuse of a [FixedWindow], and DebtCarry of other algorithms.
	DebtDefault Debt = iota
	// DebtRefuse has a [FixedWindow] count it until its window or period ends: till then
	// calls are denied, unless what is given back makes room. The next one begins
	// with all of Max. Other algorithms have no such end.
	DebtRefuse
	// DebtCarry charges it to the time that comes. Of a [FixedWindow], which then has no
	// Block, Lease or Hold, the window or period that follows at once begins with so
	// much used, all of its Max at most; what is more than that is forgiven, and may be
	// where Max was lowered since. Elsewhere it leaves a window or drains from a bucket
	// like every charge.
	DebtCarry
	// DebtForgive does not count it: settling a call never charges more than there is room for.
	DebtForgive
)

// String returns the policy as the directive spells it.
func (d Debt) String() string { return spec.Debt(d).String() }
