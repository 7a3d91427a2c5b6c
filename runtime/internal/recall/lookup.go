package recall

import (
	"runtime"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Lookup says which refusals may answer a charge.
type Lookup uint8

const (
	// Fresh ones may.
	Fresh Lookup = iota
	// Rechecked ones may too: stale ones that another call rechecks.
	Rechecked
	// Rechecking is Rechecked, and the charge rechecks a stale refusal that no other
	// call rechecks. It must then be released.
	Rechecking
	// Unanswered: all that still hold may, also those of a lower cost, since
	// Redis does not respond. RetryAfter is then the least possible.
	Unanswered
)

// Call reports whether a call is known to be refused, and then fills in its results. A charge
// without a refusal gets the result of one that has room. A charge that is decided already
// keeps its result.
func (m *Memory) Call(call *terms.Call, now time.Duration, lookup Lookup) bool {
	known := m.lookUp(call.Charges, now, lookup)
	if known {
		call.Err = nil
	}
	return known
}

func (m *Memory) lookUp(charges []terms.Charge, now time.Duration, lookup Lookup) (known bool) {
	for i := range charges {
		c := &charges[i]
		if c.Source != rule.SourceNone {
			continue
		}
		if !(c.Deferred && lookup != Unanswered) && m.refuses(c, now, lookup) {
			known = true
		} else {
			c.Result, c.Err = terms.Result{Allowed: true, Remaining: c.Max}, nil
		}
	}
	return known
}

// refuses reports whether a charge is known to be refused, and then fills in its result.
func (m *Memory) refuses(c *terms.Charge, now time.Duration, lookup Lookup) bool {
	c.Rechecks = false
	if c.Shadow {
		return false
	}
	n := m.find(c, now, lookup)
	if n == nil {
		return false
	}
	if now >= n.freshEnd && lookup != Unanswered {
		if lookup == Fresh {
			return false
		}
		if !n.rechecking.Load() {
			if lookup != Rechecking {
				return false
			}
			if c.Rechecks = n.rechecking.CompareAndSwap(false, true); c.Rechecks {
				return false
			}
		}
		runtime.Gosched() // a flood of refused calls must not keep the rechecking one from its answer
	}
	r := &c.Result // set in place, since a copy waits for what was just written
	r.Allowed, r.Recalled, r.Blocked = false, true, n.blocked
	r.Remaining, r.RetryAfter, r.ResetAfter = min(n.remaining, c.Max), n.certainFit-now, n.resetTime-now
	r.MoreAfter, r.Delay, r.At, r.Mark = 0, 0, 0, 0
	return true
}

// find returns the refusal that may answer a charge, or nil.
func (m *Memory) find(c *terms.Charge, now time.Duration, lookup Lookup) *refusal {
	r := m.table.find(c.Key, c.Tenant)
	if r == nil {
		return nil
	}
	var cheaper *refusal
	for _, n := range r.refusals {
		if now >= n.fitTime || n.weight != c.Weight || m.forgotten(c, n) {
			continue
		}
		if n.cost == c.Cost && n.terms == c.Terms {
			return n
		}
		if lookup == Unanswered && n.coversCost(c) && (cheaper == nil || n.fitTime > cheaper.fitTime) {
			cheaper = n
		}
	}
	return cheaper
}

// coversCost reports whether a charge that is not equal to the refused one cannot
// fit either.
func (r *refusal) coversCost(c *terms.Charge) bool {
	t := c.Terms
	t.Max, t.Param = r.terms.Max, r.terms.Param
	return t == r.terms && c.Cost >= r.cost && c.Max <= r.terms.Max && c.Param <= r.terms.Param
}
