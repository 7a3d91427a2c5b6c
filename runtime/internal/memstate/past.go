package memstate

import "github.com/rategen/rategen/runtime/internal/terms"

// The counts of former periods are in rare, beside the state of a key, since few keys have
// any. See past.lua.

// write does a step that changes a state. If a new period begins by it, what was used of the
// one before is kept.
func (e *entry) write(step step, clock int64, c *terms.Charge, v *view) {
	if c.Keep == 0 {
		e.do(step, clock, c, v)
		return
	}
	var past *terms.Past
	from, kept := e.from, e.kept
	if clock >= from { // a new period may begin
		past = e.past(clock, c)
	}
	e.do(step, clock, c, v)
	switch {
	case e.from == 0: // it was reset
		e.forget()
		return
	case e.from != from:
		if e.rare == nil {
			e.rare = new(rare)
		}
		e.rare.past = past
	}
	if e.kept != kept {
		e.kept += c.Kept()
	}
}

// forget forgets former periods.
func (e *entry) forget() {
	if e.rare != nil {
		e.rare.past = nil
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
