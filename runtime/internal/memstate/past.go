package memstate

import "github.com/rategen/rategen/runtime/internal/terms"

// The counts of former periods, and what was told of the present one, are in entryExtra, beside the
// state of a key, since few keys have any. See past.lua.

// A reachedShares is the shares of a period that are to be told of one of a call's charges, how much
// of it is used, and how many microseconds are left.
type reachedShares struct {
	charge         int
	shares         terms.Shares
	used, timeLeft int64
}

// write does a step that changes a state. If a new period begins by it, what was used of the
// one before is kept.
func (e *entry) write(step step, clock int64, c *terms.Charge, v *view) (p reachedShares) {
	if c.Period == nil {
		e.run(step, clock, c, v)
		return p
	}
	var past *terms.Past
	var known terms.Entry
	from, kept := e.bound, e.dropTime
	if c.Ledger && step == renewStep && c.Cost <= 0 {
		e.restore(clock, c)
		return p
	}
	if c.Ledger && clock < from {
		known = e.entryAt(clock, c)
	}
	if c.Keep > 0 && clock >= from { // a new period may begin
		past = e.past(clock, c)
		known = past.Entry
	}
	written := e.run(step, clock, c, v)
	if e.bound != from {
		e.forget()
	}
	if e.bound == 0 { // it was reset
		return p
	}
	if e.bound != from && past != nil {
		e.makeExtra().past = past
	}
	if e.dropTime != kept || e.bound != from { // a new period may end when the key was to be dropped
		e.dropTime += c.Kept()
	}
	if written && c.Ledger {
		e.setEntry(clock, known)
	}
	if written && c.Tells > 0 {
		p.shares, p.used, p.timeLeft = e.passShares(c), e.count, e.bound-clock
	}
	return p
}

// passShares returns which shares of the period are to be told, and notes that they are.
func (e *entry) passShares(c *terms.Charge) terms.Shares {
	told := 0.0
	if e.extra != nil {
		told = e.extra.toldShare
	}
	shares, now := c.Passed(e.count, told)
	if shares != 0 {
		e.makeExtra().toldShare = now
	}
	return shares
}

// forget forgets former periods, what was told, and tenants.
func (e *entry) forget() {
	if e.extra != nil {
		e.extra.past, e.extra.toldShare, e.extra.entry, e.extra.tenants = nil, 0, nil, nil
	}
}

// fillPast fills in what is kept for a charge that was looked at. The entry may be nil.
func (e *entry) fillPast(clock int64, c *terms.Charge) {
	if c.Keep > 0 {
		c.Past = e.past(clock, c)
	}
}

// past returns what is kept, or is to be kept from now on. The entry may be nil.
func (e *entry) past(clock int64, c *terms.Charge) *terms.Past {
	c.SetClock(clock)
	next := &terms.Past{Begin: c.Param - c.Window, End: c.Param}
	if e == nil || e.dropTime == 0 || e.bound == 0 || e.isAhead(clock, c.Window) {
		return next
	}
	var entry terms.Entry
	if c.Ledger || e.extra != nil && e.extra.entry != nil {
		entry = e.entryAt(clock, c)
	}
	var old terms.Past
	// Else a rule that keeps nothing has begun the period.
	if e.extra != nil && e.extra.past != nil && e.extra.past.End == e.bound {
		old = *e.extra.past
	}
	if clock < e.bound {
		now := &terms.Past{Begin: old.Begin, End: e.bound, Counts: old.Counts}
		now.Entry = entry
		if c.Ledger {
			now.Used = e.count
		}
		if c.Ledger && e.kind == reservedKind {
			now.Used = (*reserved)(&e.state).countAt(clock, c).used
		}
		return now
	}
	used := e.count
	if e.kind == reservedKind {
		k := (*reserved)(&e.state).countAt(clock, c)
		used = k.previousUsed
		if c.Ledger {
			next.Used, next.Entry.Base = k.carriedDebt, k.carriedDebt
		}
	}
	next.Begin = max(next.Begin, e.bound)
	next.Counts = append([]terms.Count{{Begin: old.Begin, End: e.bound, Used: used, Entry: entry}}, old.Counts...)
	next.Counts = next.Counts[:min(len(next.Counts), int(c.Keep))]
	return next
}
