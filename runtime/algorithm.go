package runtime

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// An Algorithm says how a rule counts.
type Algorithm uint8

const (
	// SlidingLog keeps the time of every event and is exact: no window of any position holds
	// more than Max, and no call is denied while it holds fewer. The window at the time t is
	// (t-Window, t]: an event exactly one Window old has left it. With a Resolution all that
	// holds for the times that events are given, see [Rule].
	SlidingLog Algorithm = iota
	// SlidingCounter counts events in [Buckets]. No window holds more than Max; an event may
	// count for up to one bucket longer than the window.
	SlidingCounter
	// FixedWindow counts from the first event on and starts anew when the window is over.
	// Around that moment up to twice Max pass in one window.
	FixedWindow
	// TokenBucket admits a Burst at once and Max a window in the long run: no window holds more
	// than Burst and Max together.
	TokenBucket
	// LeakyBucket is a [TokenBucket] by another name, unless the rule has a Wait: then it is a
	// queue which calls leave evenly spaced.
	LeakyBucket
	// Concurrency admits Max calls at a time, over all processes. A call holds as many permits
	// as it costs from [Limiter.Take] to [Limiter.Settle], which its caller must not forget: the
	// limiter renews them until then, or until [Limiter.Close]. Those of a process that has died
	// lapse within a Window. RetryAfter is an estimate by how long calls have lasted lately, and
	// at most the time until permits lapse.
	Concurrency
)

// String returns the algorithm as the directive spells it.
func (a Algorithm) String() string { return plan.Way(a).String() }

// spelled returns the name of a value, of a type whose values count from 0.
func spelled(kind string, value uint8, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", kind, value)
}

// A Storage says how Redis keeps a [SlidingLog]. All decide alike.
type Storage uint8

const (
	// StorageZSET keeps events in a sorted set: easy to read by hand, 20 bytes an event up to
	// 128 events, about 130 beyond.
	StorageZSET Storage = iota
	// StoragePacked keeps events in a string: 7 to 9 bytes an event, and the least work for
	// Redis. Nothing but a program can read it.
	StoragePacked
)

// String returns the storage as the directive spells it.
func (s Storage) String() string { return spelled("Storage", uint8(s), "zset", "packed") }

// MaxBuckets is the largest number of buckets of a [SlidingCounter].
const MaxBuckets = spec.MaxBuckets

// Buckets says how a [SlidingCounter] divides its window. The zero value is 60 buckets of equal
// width.
type Buckets struct {
	coarse, fine int16 // fine 0: equal buckets
	adaptive     bool
}

// EqualBuckets divides the window into n buckets, from 1 to [MaxBuckets]. An event counts for
// at most 1/n of the window too long.
func EqualBuckets(n int) Buckets {
	b := LayeredBuckets(n, 1)
	b.fine = 0
	return b
}

// LayeredBuckets divides the window into coarse buckets of fine ones each, at least one and
// together at most [MaxBuckets]. It decides as coarse*fine equal buckets do, and costs as much.
func LayeredBuckets(coarse, fine int) Buckets {
	if coarse < 1 || fine < 1 || coarse > MaxBuckets || fine > MaxBuckets || coarse*fine > MaxBuckets {
		return Buckets{coarse: -1}
	}
	return Buckets{coarse: int16(coarse), fine: int16(fine)}
}

// AdaptiveBuckets adapts the width of new buckets to the traffic, from 1/1024 of the window
// when it is dense to 1/16 when it is sparse. An event counts for at most 1/16 of the window
// too long.
func AdaptiveBuckets() Buckets { return Buckets{adaptive: true} }

// String returns the buckets as the directive spells them.
func (b Buckets) String() string {
	b = b.orDefault()
	switch {
	case b.adaptive:
		return "auto"
	case b.fine > 0:
		return strconv.Itoa(int(b.coarse)) + "x" + strconv.Itoa(int(b.fine))
	}
	return strconv.Itoa(int(b.coarse))
}

func (b Buckets) orDefault() Buckets {
	if b == (Buckets{}) {
		return Buckets{coarse: 60}
	}
	return b
}

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
	if l.rule == nil || l.rule.Period == NoPeriod {
		return l
	}
	unit := spec.Unit(l.rule.Period)
	if anchor == 0 && unit == spec.Week {
		anchor = 7
	}
	p, err := calendar.Load(unit, zone, int(max(-1, min(anchor, 9999)))) // as no anchor is
	if err != nil || anchor == 0 && unit != spec.Day {
		l.key.AddInvalid("the time zone of a period is unknown, or its anchor is invalid or 0") // both may be a caller's
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
	return calendar.Load(spec.Unit(r.Period), r.Zone, r.Anchor)
}

// A Debt says what becomes of what calls turn out to cost beyond the Max of a rule.
type Debt uint8

const (
	// DebtDefault is DebtRefuse of a [FixedWindow], and DebtCarry of other algorithms.
	DebtDefault Debt = iota
	// DebtRefuse has a [FixedWindow] count it until its window or period ends: till then calls
	// are denied, unless what is given back makes room. The next one begins with all of Max.
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
func (d Debt) String() string { return spec.Debt(d).String() }
