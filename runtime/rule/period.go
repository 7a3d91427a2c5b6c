package rule

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
)

// A Period is a period of the calendar, in a time zone. It begins at the first instant of its
// local date: midnight, unless the zone skips it. Days of 23 and 25 hours are whole periods.
//
// The clock of the store decides in which period a call falls. A period that has begun for a
// key ends when it was to end then, whatever Zone and Anchor the calls after that bring: these
// hold for the next one, so that nobody has a second budget by changing them.
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
// otherwise invalid. The key of the limit becomes invalid, as by [Key.AddInvalid], if there is
// no such zone or anchor. The rule's [InvalidKeyPolicy] decides such calls: by default they share
// a budget. So check a zone that a caller may choose, or have the rule refuse invalid keys.
func (l Limit) WithPeriod(zone string, anchor int64) Limit {
	if l.Rule == nil || l.Rule.Period == NoPeriod {
		return l
	}
	unit := spec.Unit(l.Rule.Period)
	if anchor == 0 && unit == spec.Week {
		anchor = 7
	}
	p, err := calendar.Load(unit, zone, int(max(-1, min(anchor, 9999)))) // as no anchor is
	if err != nil || anchor == 0 && unit != spec.Day {
		l.Key.AddInvalid("the time zone of a period is unknown, or its anchor is invalid or 0") // both may be a caller's
		return l
	}
	l.period = p
	return l
}

// A Ledger says whether package rateledger puts what was used of each period, and by whom, into a
// database, for a rule with a Period and without a Lease. Its keys live for 35 days at least after a
// period, and grow by some 50 bytes, and as much for each period that the database may be away for.
type Ledger uint8

const (
	LedgerOff Ledger = iota
	// LedgerOn keeps what is used by keys as [Key.String] returns them.
	LedgerOn
	// LedgerHash keeps the SHA-256 of keys in their place, where these are secrets. What was used can
	// then not be restored.
	LedgerHash
)

// String returns the ledger as the directive spells it.
func (l Ledger) String() string { return spelled("Ledger", uint8(l), "off", "on", "hash") }

// A Debt says what becomes of what calls turn out to cost beyond the Max of a rule.
type Debt uint8

const (
	// DebtDefault is DebtRefuse of a [FixedWindow], and DebtCarry of other algorithms.
	DebtDefault Debt = iota
	// DebtRefuse has a [FixedWindow] count it until its window or period ends: till then calls
	// are refused, unless what is given back makes room. The next one begins with all of Max.
	// Other algorithms have no such end.
	DebtRefuse
	// DebtCarry charges it to the time that comes. Of a [FixedWindow], which then has no Block,
	// Lease or Hold, the window or period that follows at once begins with so much used, all of
	// its Max at most; what is more than that is forgiven, and may be where Max was lowered
	// since. Elsewhere it leaves a window or drains from a bucket like every charge.
	DebtCarry
	// DebtForgive does not count it: settling a call never charges more than there is room for.
	DebtForgive
)

// String returns the policy as the directive spells it.
func (d Debt) String() string {
	return spelled("Debt", uint8(d), "default", spec.DebtRefuse, spec.DebtCarry, spec.DebtForgive)
}
