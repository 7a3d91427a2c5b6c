package ledger

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Use charges a call by a plan to a lease, and fills in the result. It returns false,
// and has done nothing, if there are not enough units. It keeps nothing of the charge,
// which may be on its caller's stack.
func (l *Leases) Use(p *plan.Plan, c *terms.Charge) bool {
	e := l.table.find(c.Key, p)
	if e == nil {
		return false
	}
	now := clock.Now()
	g, left := e.take(l, c.Cost, now)
	if g == nil {
		return false
	}
	r := &c.Result
	r.Allowed, r.Remaining, r.ResetAfter, r.At, r.Mark = true, min(g.remaining+left, p.Capacity),
		max(0, g.resetTime-now), g.chargeTime, g.mark
	r.MoreAfter = 0 // not of the lease alone
	c.Source = rule.SourceLease
	return true
}

func (t *leaseTable) find(key []byte, p *plan.Plan) *lease {
	sets := t.sets.Load()
	if sets == nil {
		return nil
	}
	hash := maphash.Bytes(t.seed, key)
	set := &sets[hash%setCount]
	for i := range set {
		e := set[i].Load()
		if e != nil && e.hash == hash && e.plan.Key == p.Key && e.key == string(key) {
			return e
		}
	}
	return nil
}

// take takes units at an instant. It returns the grant that they are of, or nil,
// and how many it has left. It has the next grant asked for in time.
func (l *lease) take(t *Leases, cost int64, now time.Duration) (*grant, int64) {
	for g := l.grant.Load(); g != nil; g = l.grant.Load() {
		if left, ok := g.take(cost, now); ok {
			if (left <= g.refillUnits || now >= g.refillTime) && g.next.Load() == nil && int64(now) >= l.earliestAsk.Load() {
				l.ask(t, cost, now)
			}
			return g, left
		}
		if g.next.Load() == nil || !l.advance(t, g) {
			return nil, 0
		}
	}
	return nil, 0
}

// take takes units at an instant, and reports whether there were enough.
func (g *grant) take(cost int64, now time.Duration) (left int64, ok bool) {
	if now >= g.end || g.unitsLeft.Load() < cost {
		return 0, false
	}
	if left = g.unitsLeft.Add(-cost); left >= 0 {
		return left, true
	}
	g.unitsLeft.Add(cost)
	return 0, false
}

// Cancel undoes Use: it gives the units back. The charge then is one that had room and was
// not made.
func (l *Leases) Cancel(p *plan.Plan, c *terms.Charge) {
	if !l.Put(c, c.Cost) {
		l.ledger.giveBack(p, p.Correction(c.Key, c.Cost, c.Cost, c.At, c.Mark))
	}
	c.At = 0
}

// Put puts units of a charge back into the lease that they are of, and reports
// whether they can still be used.
func (l *Leases) Put(c *terms.Charge, units int64) (done bool) {
	now := clock.Now()
	l.table.each(c.Key, func(e *lease) { done = done || e.put(units, c.At, now) })
	return done
}

// Peek adds what this process holds to what is left of a limit in the store: the next
// call here may be admitted by it.
func (l *Leases) Peek(p *plan.Plan, c *terms.Charge) {
	if p.Lease == 0 {
		return
	}
	if e := l.table.find(c.Key, p); e != nil {
		n := e.units(clock.Now())
		c.Remaining = min(c.Remaining+n, p.Capacity)
		if n >= c.Cost {
			c.Allowed, c.RetryAfter = true, 0
		}
	}
}

// watch sees to it that a lease is looked at when a grant of it ends. It may be
// called while the lease's mu is held.
func (l *Leases) watch(e *lease, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[e] = struct{}{}
	l.schedule(end)
}

// schedule sees to it that a round begins at an instant, or before. The caller holds
// mu.
func (l *Leases) schedule(due time.Duration) {
	if !l.work.Closed() {
		l.alarm.set(due)
	}
}

// round ends the grants whose time is over.
func (l *Leases) round() {
	if !l.work.Begin() {
		return
	}
	defer l.work.End()
	l.mu.Lock()
	l.alarm.dueTime = 0
	looked := make([]*lease, 0, len(l.active))
	for e := range l.active {
		looked = append(looked, e)
	}
	clear(l.active)
	l.mu.Unlock()
	for _, e := range looked {
		if end := e.expire(l, clock.Now()); end != 0 {
			l.watch(e, end)
		}
	}
}

// expire ends the grants whose time is over, and returns the instant at which the
// next one ends, or 0 if there is none.
func (l *lease) expire(t *Leases, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.grant.Load()
	for g != nil && now >= g.end {
		next := g.next.Load()
		l.grant.Store(next)
		l.retire(t, g)
		g = next
	}
	if g == nil {
		return 0
	}
	return g.end
}

// Drop forgets all that this process holds of a key, which is reset. The store will
// not know of it any more, so nothing is given back.
func (l *Leases) Drop(key []byte) {
	l.table.each(key, func(e *lease) {
		e.mu.Lock()
		e.reset = true
		for g := e.grant.Load(); g != nil; g = g.next.Load() {
			g.close()
		}
		e.grant.Store(nil)
		e.mu.Unlock()
		l.table.remove(e)
	})
}

// close ends all leases, and waits for requests under way for no longer than a time.
// Calls are then decided by the store. Nil has no leases.
func (l *Leases) close(within time.Duration) {
	if l == nil {
		return
	}
	l.work.CloseWithin(within)
	l.cancel()
	l.work.Close()
	l.mu.Lock()
	l.alarm.stop()
	looked := l.active
	l.active = map[*lease]struct{}{}
	l.mu.Unlock()
	for e := range looked {
		e.expire(l, math.MaxInt64)
	}
}
