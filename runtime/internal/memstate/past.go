package memstate

import "github.com/rategen/rategen/runtime/internal/terms"

// The counts of former periods, and what was told of the present one, are in rare, beside the
// state of a key, since few keys have any. See past.lua.

// A passed is the shares of a period that are to be told of one of a call's charges, how much
// of it is used, and how many microseconds are left.
type passed struct {
	charge     int
	shares     terms.Shares
	used, left int64
}

// write does a step that changes a state. If a new period begins by it, what was used of the
// one before is kept.
func (e *entry) write(step step, clock int64, c *terms.Charge, v *view) (p passed) {
	if c.Period == nil {
		e.do(step, clock, c, v)
		return p
	}
	var past *terms.Past
	from, kept := e.from, e.kept
	if c.Keep > 0 && clock >= from { // a new period may begin
		past = e.past(clock, c)
	}
	written := e.do(step, clock, c, v)
	if e.from != from {
		e.forget()
	}
	if e.from == 0 { // it was reset
		return p
	}
	if e.from != from && past != nil {
		e.rareParts().past = past
	}
	if e.kept != kept {
		e.kept += c.Kept()
	}
	if written && c.Tells > 0 {
		p.shares, p.used, p.left = e.pass(c), e.count, e.from-clock
	}
	return p
}

// pass returns which shares of the period are to be told, and notes that they are.
func (e *entry) pass(c *terms.Charge) terms.Shares {
	told := 0.0
	if e.rare != nil {
		told = e.rare.told
	}
	shares, now := c.Passed(e.count, told)
	if shares != 0 {
		e.rareParts().told = now
	}
	return shares
}

// forget forgets former periods, and what was told.
func (e *entry) forget() {
	if e.rare != nil {
		e.rare.past, e.rare.told = nil, 0
	}
}

// recall fills in what is kept for a charge that was looked at. The entry may be nil.
func (e *entry) recall(clock int64, c *terms.Charge) {
	if c.Keep > 0 {
		c.Past = e.past(clock, c)
	}
}

// past returns what is kept, or is to be kept from now on. The entry may be nil.
func (e *entry) past(clock int64, c *terms.Charge) *terms.Past {
	c.SetClock(clock)
	next := &terms.Past{Begin: c.Param - c.Window, End: c.Param}
	if e == nil || e.kept == 0 || e.from == 0 || e.ahead(clock, c.Window) {
		return next
	}
	var old terms.Past
	if e.rare != nil && e.rare.past != nil && e.rare.past.End == e.from { // else a rule that keeps nothing has begun the period
		old = *e.rare.past
	}
	if clock < e.from {
		return &terms.Past{Begin: old.Begin, End: e.from, Counts: old.Counts}
	}
	used := e.count
	if e.kind == reservedKind {
		used = (*reserved)(&e.state).countAt(clock, c).ended
	}
	next.Begin = max(next.Begin, e.from)
	next.Counts = append([]terms.Count{{Begin: old.Begin, End: e.from, Used: used}}, old.Counts...)
	next.Counts = next.Counts[:min(len(next.Counts), int(c.Keep))]
	return next
}
