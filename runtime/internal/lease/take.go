package lease

import (
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Take charges a call by a plan to a lease, and fills in the result. It returns false,
// and has done nothing, if there are not enough units. It keeps nothing of the charge,
// which may be on its caller's stack.
func (t *Leases) Take(p *plan.Plan, c *terms.Charge) bool {
	e := t.table.find(c.Key, p)
	if e == nil {
		return false
	}
	now := clock.Now()
	g, left := e.take(t, c.Cost, now)
	if g == nil {
		return false
	}
	r := &c.Result
	r.Allowed, r.Remaining, r.ResetAfter, r.At, r.Mark = true, min(g.rest+left, p.Capacity), max(0, g.whole-now), g.at, g.mark
	c.Source = terms.ByLease
	return true
}

// Release takes back what Take did. The charge then is one that had room and was not
// made.
func (t *Leases) Release(p *plan.Plan, c *terms.Charge) {
	if !t.Put(c, c.Cost) {
		t.giveBack(p, p.Units(c.Key, c.Cost, c.Cost, c.At, c.Mark))
	}
	c.At = 0
}

// Put puts units of a charge back into the lease that they are of, and reports
// whether they can still be used.
func (t *Leases) Put(c *terms.Charge, units int64) (done bool) {
	now := clock.Now()
	t.table.each(c.Key, func(e *lease) { done = done || e.put(units, c.At, now) })
	return done
}

// Peek adds what this process holds to what is left of a limit in the store: the next
// call here may be admitted by it.
func (t *Leases) Peek(p *plan.Plan, c *terms.Charge) {
	if p.Lease == 0 {
		return
	}
	if e := t.table.find(c.Key, p); e != nil {
		n := e.units(clock.Now())
		c.Remaining = min(c.Remaining+n, p.Capacity)
		if n >= c.Cost {
			c.Allowed, c.RetryAfter = true, 0
		}
	}
}

// Held returns for how many keys there is or was a lease, and how many units these have
// left.
func (t *Leases) Held() (keys int, units int64) {
	sets := t.table.sets.Load()
	if sets == nil {
		return 0, 0
	}
	for i := range sets {
		for j := range sets[i] {
			if e := sets[i][j].Load(); e != nil {
				keys++
				for g := e.current.Load(); g != nil; g = g.next.Load() {
					units += max(0, g.left.Load())
				}
			}
		}
	}
	return keys, units
}

// Units returns how many units there are that can be used, by the name of the rule.
func (t *Leases) Units() map[string]int64 {
	units := map[string]int64{}
	sets, now := t.table.sets.Load(), clock.Now()
	for s := 0; sets != nil && s < len(sets); s++ {
		for i := range sets[s] {
			e := sets[s][i].Load()
			if e == nil {
				continue
			}
			for g := e.current.Load(); g != nil; g = g.next.Load() {
				if now < g.end {
					units[e.plan.Name] += max(0, g.left.Load())
				}
			}
		}
	}
	return units
}
