package memstate

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// An entryExtra has what a ledger knows of the count, and each kept count has its own. See ledger.lua.

// entryAt returns what a ledger knows of the count at a time: nothing if there is none.
func (e *entry) entryAt(clock int64, c *terms.Charge) (n terms.Entry) {
	if e.dropTime == 0 || e.bound == 0 {
		return n
	}
	n.Version, n.Epoch = e.time, e.time
	if e.extra != nil && e.extra.entry != nil {
		n = *e.extra.entry
	}
	if e.kind == reservedKind {
		n.Version = max(n.Version, (*reserved)(&e.state).countAt(clock, c).lapseTime)
	}
	return n
}

// setEntry notes that the count has changed, of which a ledger has known n.
func (e *entry) setEntry(clock int64, n terms.Entry) {
	n.Version = max(n.Version+1, clock)
	if n.Epoch == 0 {
		n.Epoch = e.time
	}
	extra := e.makeExtra()
	if extra.entry == nil {
		extra.entry = new(terms.Entry)
	}
	*extra.entry = n
}

// restore forgives all of a count at no cost, and adds to it what other epochs have used below 0. It
// sets c.At to 0 if it does neither.
func (e *entry) restore(clock int64, c *terms.Charge) {
	past, known := e.past(clock, c), e.dropTime > 0 && !e.isAhead(clock, c.Window)
	used, n := past.Used, past.Entry
	if c.Cost == 0 && known && (e.kind == reservedKind || n.Epoch > 0) {
		n.Base, n.Whole, used = n.Base-used, true, 0
	} else if c.Cost < 0 && !n.Whole && max(n.Epoch, terms.NoEpoch) == c.At {
		n.Base, n.Whole, used = n.Base-c.Cost, true, min(used-c.Cost, spec.MaxAmount)
	} else {
		c.At = 0
		return
	}
	from, kept := e.bound, e.dropTime
	if e.kind == reservedKind {
		(*reserved)(&e.state).restore(clock, c, used)
	} else {
		if c.Cost == 0 || n.Epoch == 0 {
			e.time = clock
		}
		e.bound = past.End
		if n.Epoch == 0 && clock >= c.Param {
			e.bound = c.More
		}
		e.count, e.dropTime = used, e.bound
	}
	if e.bound != from {
		e.forget()
		e.makeExtra().past = past
	}
	if e.dropTime != kept || e.bound != from {
		e.dropTime += c.Kept()
	}
	e.setEntry(clock, n)
}

// restore sets how much is used. At no cost it forgets what is reserved and owed.
func (r *reserved) restore(clock int64, c *terms.Charge, used int64) {
	k, newest := r.countAt(clock, c), r.number(headerHighest)
	k.used = used
	if c.Cost == 0 {
		newest = max(clock, newest)
		k.reserved, k.debt, k.lapsedItems = 0, 0, int64(len(r.reservations())/itemSize)
	}
	r.write(&k, newest, clock, c)
	if c.Cost == 0 {
		r.list[headerReset] = newest
	}
}
