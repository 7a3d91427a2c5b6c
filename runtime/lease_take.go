package runtime

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/rategen/rategen/runtime/internal/receipts"
)

// leased reports whether the limit may have a lease.
func (l *Limit) leased() bool { return l.rule != nil && l.rule.Lease > 0 }

// takeLeased is Take for the most common calls by a lease: a valid key of ordinary
// length, and one limit. It returns false, and has done nothing, if the call is of
// another kind or there is no lease for it.
func (l *Limiter) takeLeased(ctx context.Context, limit *Limit, d *Decision) bool {
	rule, max, on, err := l.effective(limit)
	if err != nil || !on || limit.cost == 0 || limit.key.rare != nil || l.cap != nil ||
		len(l.namespace)+rule.prefixLen()+len(limit.key.bytes()) > fastKey || ctx.Err() != nil {
		return false
	}
	var array [fastKey + 32]byte
	key := appendKey(array[:0], l.namespace, rule, &limit.key)
	e := l.leases.table.find(key, rule, max)
	if e == nil {
		return false
	}
	now := instant()
	g, left := e.take(l.leases, limit.cost, now)
	if g == nil {
		return false
	}
	d.Allowed, d.Source, d.Rule, d.Limit = true, SourceLease, rule.Name, rule.capacity(max)
	d.Remaining, d.ResetAfter, d.charged[0], d.marks[0] = g.remaining(left, d.Limit), g.resetAfter(now), g.at, g.mark
	page, receipt := receipts.Issue()
	d.page, d.receipt = page, uint32(receipt)|limit.mark(maphash.String(l.seed, rule.Name))&^receipts.Mask
	if l.events.decides() {
		c := Charge{Rule: rule, Max: max, Cost: limit.cost, Result: g.result(left, d.Limit, now)}
		l.events.decided(ctx, []Charge{c}, now, SourceLease, nil)
	}
	return true
}

// remaining estimates what is left of a limit when so many units are left.
func (g *grant) remaining(left, capacity int64) int64 { return min(g.rest+left, capacity) }

func (g *grant) resetAfter(now time.Duration) time.Duration { return max(0, g.whole-now) }

// result returns the result of a charge that the grant has admitted.
func (g *grant) result(left, capacity int64, now time.Duration) Result {
	return Result{Allowed: true, Remaining: g.remaining(left, capacity), ResetAfter: g.resetAfter(now), At: g.at, Mark: g.mark}
}

// leased reports whether any limit of the request may have a lease.
func (r *request) leased() bool {
	for i := range r.charges {
		if r.charges[i].Rule.Lease > 0 {
			return true
		}
	}
	return false
}

// hold takes the units of as many charges of a request as there are leases for.
// These charges it puts behind the others, which remain the request's call. It
// returns those that are held.
func (t *leases) hold(req *request) (held []Charge) {
	n := len(req.charges)
	for i := 0; i < n; {
		if !t.charge(&req.charges[i]) {
			i++
			continue
		}
		c := req.charges[i]
		copy(req.charges[i:], req.charges[i+1:])
		req.charges[len(req.charges)-1] = c
		n--
	}
	req.call[0].Charges = req.charges[:n]
	return req.charges[n:]
}

// charge charges a limit to a lease, and reports whether there are enough units.
func (t *leases) charge(c *Charge) bool {
	if c.Rule.Lease == 0 {
		return false
	}
	e := t.table.find(c.Key, c.Rule, c.Max)
	if e == nil {
		return false
	}
	now := instant()
	g, left := e.take(t, c.Cost, now)
	if g == nil {
		return false
	}
	c.Result, c.source = g.result(left, c.capacity(), now), SourceLease
	return true
}

// release takes back what hold did, since another limit denies the call or nobody
// could decide it. The charges then are ones that had room and were not made.
func (t *leases) release(held []Charge) {
	now := instant()
	for i := range held {
		c := &held[i]
		if !t.put(c, c.Cost, now) {
			t.giveBack(c.Rule, c.Key, c.Max, c.Cost, c.At, c.Mark)
		}
		c.At = 0
	}
}

// put puts units of a charge back into the lease that they are of, and reports
// whether they can still be used.
func (t *leases) put(c *Charge, units int64, now time.Duration) (done bool) {
	t.table.each(c.Key, func(e *lease) { done = done || e.put(units, c.At, now) })
	return done
}

// decideLeased decides a request of which some limits may have leases.
func (l *Limiter) decideLeased(ctx context.Context, req *request) (Source, error) {
	if err := ctx.Err(); err != nil {
		return l.decidedBy(ctx, req, err)
	}
	held := l.leases.hold(req)
	asked := req.call[0].Charges
	if beside := len(asked) > 0 && !enforces(asked) && enforces(held); beside || len(asked) == 0 {
		if beside {
			l.askBeside(ctx, req)
			l.shadowsDecided(ctx, req)
			l.leases.learnAll(asked)
		}
		req.call[0].Charges = req.charges
		return SourceLease, nil
	}
	source, err := l.decidedBy(ctx, req, l.ask(ctx, req.call[:]))
	admitted := req.call[0].admitted()
	req.call[0].Charges = req.charges
	switch {
	case err != nil || !admitted:
		l.leases.release(held)
	case source == SourceLocal:
		for i := range held {
			held[i].At = 0 // it is not the limiter's own store that has made the charge
		}
	}
	if source == SourceStore {
		l.leases.learnAll(asked)
	}
	return source, err
}

// learnAll learns what the store has found about charges.
func (t *leases) learnAll(charges []Charge) {
	for i := range charges {
		if c := &charges[i]; c.source != SourceFailure {
			t.learn(c)
		}
	}
}

// returned puts units that are given back into the leases that they are of, and
// returns the other charges.
func (t *leases) returned(charges []Charge) []Charge {
	now := instant()
	kept := charges[:0]
	for i := range charges {
		c := &charges[i]
		if c.Rule.Lease == 0 || c.Settled >= c.Cost || !t.put(c, c.Cost-c.Settled, now) {
			kept = append(kept, *c)
		}
	}
	return kept
}

// peek adds what this process holds to what is left of limits in the store: the next
// call here may be admitted by it.
func (t *leases) peek(charges []Charge) {
	now := instant()
	for i := range charges {
		c := &charges[i]
		if c.Rule.Lease == 0 {
			continue
		}
		if e := t.table.find(c.Key, c.Rule, c.Max); e != nil {
			n := e.units(now)
			c.Remaining = min(c.Remaining+n, c.capacity())
			if n >= c.Cost {
				c.Allowed, c.RetryAfter = true, 0
			}
		}
	}
}
