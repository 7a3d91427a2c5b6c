package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"sync"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Settlement is charges that are to be settled together, with their plans and the memory for both.
type Settlement struct {
	// Local says that this process alone has made the charges.
	Local   bool
	Charges []terms.Charge
	Plans   []*plan.Plan
	keys    []byte
	permits []withdrawal // by charge; nil where it holds none
}

var settlementPool = sync.Pool{New: func() any { return new(Settlement) }}

// NewSettlement returns an empty settlement, which is to be freed.
func NewSettlement() *Settlement { return settlementPool.Get().(*Settlement) }

// Free ends the use of a settlement, whose memory is used again.
func (s *Settlement) Free() {
	s.clear()
	settlementPool.Put(s)
}

func (s *Settlement) clear() {
	clear(s.Charges)
	clear(s.Plans)
	clear(s.permits)
	s.Local = false
	s.Charges, s.Plans, s.keys, s.permits = s.Charges[:0], s.Plans[:0], s.keys[:0], s.permits[:0]
}

// key appends the key of a call by a plan to the settlement's memory.
func (s *Settlement) key(p *plan.Plan, parts []byte) []byte {
	start := len(s.keys)
	s.keys = p.AppendKey(s.keys, parts)
	return s.keys[start:len(s.keys):len(s.keys)]
}

// keep copies bytes to the settlement's memory.
func (s *Settlement) keep(text []byte) []byte {
	start := len(s.keys)
	s.keys = append(s.keys, text...)
	return s.keys[start:len(s.keys):len(s.keys)]
}

// add adds a charge whose key is in the settlement's memory.
func (s *Settlement) add(p *plan.Plan, c terms.Charge) {
	s.Charges, s.Plans = append(s.Charges, c), append(s.Plans, p)
}

// Correct adds what is to be settled, so that a cost is charged in place of the one that was
// made. The error says why it cannot be. With an error a reservation is settled all the same, at
// what it was made at.
func (s *Settlement) Correct(p *plan.Plan, parts *keytext.Parts, m Made, settled int64) (err error) {
	reserved := p.Terms.Reserve > 0
	if settled > m.Cost { // to give back is always possible
		if err = p.Numbers.CheckSettled(m.Cost, settled); err != nil && !reserved {
			return err
		} else if err != nil {
			settled = m.Cost
		}
	}
	if p.Queues() && !m.Left {
		settled = max(settled, 1) // its turn has begun, so that the next one is window/max away
	}
	if settled == m.Cost {
		settled = m.Charged // its charge stays
	}
	if settled != m.Charged || reserved {
		s.correct(p, parts, m, settled)
	}
	return err
}

// correct is Correct for a cost that can be. A call that was charged once for several limits on
// one key is settled once, at the sum.
func (s *Settlement) correct(p *plan.Plan, parts *keytext.Parts, m Made, settled int64) {
	if m.Local {
		p = p.Share
	}
	key, tenancy := s.key(p, parts.Bytes()), terms.Tenancy{}
	if p.Divided() {
		tenant, weight := parts.Tenant()
		tenancy = terms.Tenancy{Tenant: s.keep(tenant), Weight: int64(weight)}
	}
	if i := s.find(key, m.At); i >= 0 {
		o := &s.Charges[i]
		if p.Max < s.Plans[i].Max {
			s.Plans[i] = s.Plans[i].WithMax(p.Max)
		}
		*o = s.Plans[i].Correction(o.Key, o.Charged+m.Charged, m.Charged-settled-o.Cost, m.At, m.Mark)
		o.Tenancy = tenancy
		return
	}
	c := p.Correction(key, m.Charged, m.Charged-settled, m.At, m.Mark)
	c.Tenancy = tenancy
	s.add(p, c)
}

func (s *Settlement) find(key []byte, at int64) int {
	for i := range s.Charges {
		if c := &s.Charges[i]; c.At == at && bytes.Equal(c.Key, key) {
			return i
		}
	}
	return -1
}

// Filter removes the charges for which keep is false.
func (s *Settlement) Filter(keep func(*plan.Plan, *terms.Charge) bool) {
	n := 0
	for i := range s.Charges {
		if keep(s.Plans[i], &s.Charges[i]) {
			s.Charges[n], s.Plans[n] = s.Charges[i], s.Plans[i]
			n++
		}
	}
	s.cut(n)
}

func (s *Settlement) cut(n int) {
	clear(s.Charges[n:])
	clear(s.Plans[n:])
	s.Charges, s.Plans = s.Charges[:n], s.Plans[:n]
}

// Charge returns the i-th limit of the decision, and what was charged to it: nothing if its At
// is 0. It reports false if there are fewer.
func (k *Kept) Charge(i int) (limit rule.Limit, made Made, ok bool) {
	made = k.Made
	if k.Items == nil {
		return k.Limit, made, i == 0
	}
	c := k.Items
	for ; i > 0 && c != nil; i-- {
		c = c.Next
	}
	if c == nil {
		return rule.Limit{}, made, false
	}
	parts := keytext.ParsedParts(string(c.Parts))
	if c.Weight != 0 {
		tenant := keytext.ParsedParts(string(c.Tenant))
		parts.SetTenant(&tenant, c.Weight)
	}
	if c.Invalid != nil {
		parts.Fail(c.Invalid)
	}
	made.Cost, made.Charged, made.At, made.Mark = c.Cost, c.Charged, c.At, c.Mark
	return rule.Engine.MakeLimit(c.Rule, parts, c.Cost, c.Max, c.Period), made, true
}

// ErrSettled is runtime.ErrSettled, which says what it means.
var ErrSettled = errors.New("the decision was settled or refunded before")

// Fill fills in what is to be settled of a decision that was charged, which then counts as settled.
// If there is an error it is permits only, or nothing.
func (l *Ledger) Fill(b *Settlement, k *Kept, costs []int64) error {
	b.Local = k.Local
	var found bool
	var err error
	for i := 0; ; i++ {
		limit, made, ok := k.Charge(i)
		if !ok {
			break
		}
		cost := int64(-1)
		if i < len(costs) {
			cost = costs[i]
		}
		settles, invalid := l.correct(b, &limit, made, cost)
		found, err = found || settles, cmp.Or(err, invalid)
	}
	if err != nil {
		// The call's permits and reservations would be renewed for as long as the process runs.
		b.Filter(func(_ *plan.Plan, c *terms.Charge) bool {
			if c.Reserve > 0 {
				c.Cost = 0
			}
			return c.Lapses()
		})
		found = len(b.Charges) > 0
	}
	if found && !k.Flags.Set(k.Flag) {
		b.Filter(func(*plan.Plan, *terms.Charge) bool { return false })
		return ErrSettled
	}
	return err
}

// correct adds what is to be settled of a limit whose charge was made. A cost below 0 leaves
// it. It reports whether the limit is settled, if only at the cost that was reserved. The
// error says why it cannot be settled at the cost.
func (l *Ledger) correct(b *Settlement, limit *rule.Limit, made Made, cost int64) (settles bool, err error) {
	reserved := limit.Rule.Reserve > 0
	if made.At == 0 || limit.Cost == 0 {
		return false, nil
	}
	if limit.Rule.Algorithm == rule.Concurrency {
		cost = 0
	} else if cost < 0 && reserved {
		cost = limit.Cost
	} else if cost < 0 {
		return false, nil
	}
	p, err := l.Plans.Charged(limit)
	if err != nil {
		return false, err
	}
	err = b.Correct(p, rule.Engine.PartsOf(limit), made, cost)
	if err == nil {
		if cost == 0 && !p.Terms.Is(algorithm.Lends) && p.Sample != nil && p.Sample.Return() {
			l.AllRefunded(p.Name)
		}
		return true, nil
	}
	return p.Terms.Reserve > 0, rule.Engine.Invalid(p.Rule, err)
}
