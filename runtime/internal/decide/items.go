package decide

import (
	"math/bits"

	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/rule"
)

// Items returns what a decision keeps of each limit of the call: the first one of them.
func (c *Tried) Items(limits []rule.Limit) *ledger.Item {
	items := c.arena.Items(len(limits))
	for i := range limits {
		o, l := &items[i], &limits[i]
		parts := rule.Engine.PartsOf(l)
		tenant, weight := parts.Tenant()
		o.Parts, o.Tenant, o.Weight = c.arena.Parts(parts.Bytes()), c.arena.Parts(tenant), weight
		o.Rule, o.Cost, o.Max, o.Period, o.Invalid = l.Rule, l.Cost, l.Max, rule.Engine.PeriodOf(l), parts.Err()
	}
	for i := range c.Tries {
		t := &c.Tries[i]
		made := c.Charges[i].Made(t)
		for set := c.Charges[i].Limits; set != 0; set &= set - 1 {
			o := &items[bits.TrailingZeros8(set)]
			o.At, o.Mark, o.Charged = t.At, t.Mark, min(o.Cost, made)
			made -= o.Charged
		}
	}
	return &items[0]
}
