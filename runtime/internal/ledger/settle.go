package ledger

import (
	"bytes"
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
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

// find returns the place of the charge that was made on a key at a time, or -1.
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

// cut removes the charges from the n-th on.
func (s *Settlement) cut(n int) {
	clear(s.Charges[n:])
	clear(s.Plans[n:])
	s.Charges, s.Plans = s.Charges[:n], s.Plans[:n]
}

// prepare tells Settling of a settlement, and puts units of leases back into their leases. Other charges
// stay, and so do those that cost more than was charged, or whose grant is over.
func (l *Ledger) prepare(ctx context.Context, b *Settlement) {
	if l.Settling != nil {
		l.Settling(ctx, b)
	}
	if l.Leases != nil && !b.Local {
		b.Filter(func(p *plan.Plan, c *terms.Charge) bool {
			if p.Lease == 0 || c.Cost >= 0 || !l.Leases.Put(c, -c.Cost) {
				return true
			}
			l.wake(c)
			return false
		})
	}
}

// SettleNow settles charges. Each that was not settled has an error.
func (l *Ledger) SettleNow(ctx context.Context, b *Settlement) {
	l.prepare(ctx, b)
	if len(b.Charges) > 0 {
		l.settleNow(ctx, b)
	}
}

// settleNow is SettleNow for charges that no lease takes back.
func (l *Ledger) settleNow(ctx context.Context, b *Settlement) {
	b.permits = b.permits[:0]
	for i := range b.Charges {
		var w withdrawal
		if c := &b.Charges[i]; c.Lapses() {
			w = l.Permits.withdraw(b.Plans[i], c, b.Local)
		}
		b.permits = append(b.permits, w)
	}
	l.settle(ctx, b.Local, b.Charges)
	for i, w := range b.permits {
		if w != (withdrawal{}) {
			l.Permits.recordReturn(w, b.Charges[i].Err)
		}
		if b.Charges[i].Err == nil {
			l.wake(&b.Charges[i])
		}
	}
}

// wake has calls of this process ask that wait for room which a settled charge gives back.
func (l *Ledger) wake(c *terms.Charge) {
	if c.Cost < 0 && l.Lines.waiting.Load() > 0 {
		l.Lines.Wake(c.Key, -c.Cost)
	}
}

// settle has a store settle charges, and sets the error of each.
func (l *Ledger) settle(ctx context.Context, local bool, charges []terms.Charge) {
	ctx, cancel := l.Bound(ctx)
	defer cancel()
	err := l.Stores[storeIndex(local)].Settle(ctx, charges)
	for i := range charges {
		c := &charges[i]
		if err != nil {
			c.Err = private.Hide(err)
		} else if c.Err != nil {
			c.Err = private.Hide(c.Err)
		}
	}
}

// Report tells Unsettled of charges that were not settled.
func (l *Ledger) Report(ctx context.Context, b *Settlement) {
	for i := range b.Charges {
		if err := b.Charges[i].Err; err != nil {
			l.Unsettled(ctx, b.Plans[i], err)
		}
	}
}
