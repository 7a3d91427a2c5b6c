// Package settle changes charges to what their calls turned out to cost.
//
// It is handed charges that a store has made, each with the difference between its final
// and its charged cost. It promises to settle each at most once: at once, or soon in a
// goroutine of its own, together with others. It never computes what a call cost.
package settle

import (
	"bytes"
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/internal/lease"
	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Batch is charges that are to be settled, with their plans and the memory for both.
type Batch struct {
	Charges []terms.Charge
	Plans   []*plan.Plan
	keys    []byte
	permits []permit.Withdrawal // by charge; nil where it holds none
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// NewBatch returns an empty batch, which is to be freed.
func NewBatch() *Batch { return batches.Get().(*Batch) }

// Free ends the use of a batch, whose memory is used again.
func (b *Batch) Free() {
	b.clear()
	batches.Put(b)
}

func (b *Batch) clear() {
	clear(b.Charges)
	clear(b.Plans)
	clear(b.permits)
	b.Charges, b.Plans, b.keys, b.permits = b.Charges[:0], b.Plans[:0], b.keys[:0], b.permits[:0]
}

// key appends the key of a call by a plan to the batch's memory.
func (b *Batch) key(p *plan.Plan, parts []byte) []byte {
	start := len(b.keys)
	b.keys = p.AppendKey(b.keys, parts)
	return b.keys[start:len(b.keys):len(b.keys)]
}

// add adds a charge whose key is the batch's.
func (b *Batch) add(p *plan.Plan, c terms.Charge) {
	b.Charges, b.Plans = append(b.Charges, c), append(b.Plans, p)
}

// A Made is what a call was charged for one of its limits: how much of a cost, when, and with
// which mark.
type Made struct {
	Cost, Charged, At, Mark int64
	Local                   bool // by this process alone
	Left                    bool // the call has left a queue before its turn
}

// Correct adds what is to be settled, so that a cost is charged in place of the one that was
// made. The error says why it cannot be. A reservation then becomes what it was made at.
func (b *Batch) Correct(p *plan.Plan, parts []byte, m Made, settled int64) (err error) {
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
		b.correct(p, parts, m, settled)
	}
	return err
}

// correct is Correct for a cost that can be. A call that was charged once for several limits on
// one key is settled once, at the sum.
func (b *Batch) correct(p *plan.Plan, parts []byte, m Made, settled int64) {
	if m.Local {
		p = p.Share
	}
	key := b.key(p, parts)
	if i := b.find(key, m.At); i >= 0 {
		o := &b.Charges[i]
		if p.Max < b.Plans[i].Max {
			b.Plans[i] = b.Plans[i].AtMax(p.Max)
		}
		*o = b.Plans[i].Units(o.Key, o.Charged+m.Charged, m.Charged-settled-o.Cost, m.At, m.Mark)
		return
	}
	b.add(p, p.Units(key, m.Charged, m.Charged-settled, m.At, m.Mark))
}

// find returns the place of the charge that was made on a key at a time, or -1.
func (b *Batch) find(key []byte, at int64) int {
	for i := range b.Charges {
		if c := &b.Charges[i]; c.At == at && bytes.Equal(c.Key, key) {
			return i
		}
	}
	return -1
}

// Keep removes the charges for which keep is false.
func (b *Batch) Keep(keep func(*plan.Plan, *terms.Charge) bool) {
	n := 0
	for i := range b.Charges {
		if keep(b.Plans[i], &b.Charges[i]) {
			b.Charges[n], b.Plans[n] = b.Charges[i], b.Plans[i]
			n++
		}
	}
	b.cut(n)
}

// cut removes the charges from the n-th on.
func (b *Batch) cut(n int) {
	clear(b.Charges[n:])
	clear(b.Plans[n:])
	b.Charges, b.Plans = b.Charges[:n], b.Plans[:n]
}

// A Settler settles charges.
type Settler struct {
	// Stores have made the charges: the limiter's, and the one by which this process
	// alone counts.
	Stores [2]terms.Store
	// Permits are given back by settling.
	Permits *permit.Permits
	// Returner is the limiter's store if it settles charges that nobody waits for. It may be
	// nil.
	Returner terms.Returner
	// Leases take units back, so that no store has to. Nil: there are none.
	Leases *lease.Leases
	// Bound returns a context with the values of another, which does not end with that one
	// and bounds how long a store may take.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	// Unsettled is called for a charge that Later has not settled.
	Unsettled func(ctx context.Context, p *plan.Plan, err error)
	// Contain, deferred, ends a panic of a store.
	Contain func()

	queue queue
}

// Return puts units of leases back into their leases, and leaves the other charges.
func (s *Settler) Return(b *Batch) {
	if s.Leases != nil {
		b.Keep(func(p *plan.Plan, c *terms.Charge) bool {
			return p.Lease == 0 || c.Cost >= 0 || !s.Leases.Put(c, -c.Cost)
		})
	}
}

// Now settles charges of the limiter's store, or with local those that this process alone has
// made. Each charge that was not settled has an error.
func (s *Settler) Now(ctx context.Context, local bool, b *Batch) {
	b.permits = b.permits[:0]
	for i := range b.Charges {
		var w permit.Withdrawal
		if c := &b.Charges[i]; c.Lapses() {
			w = s.Permits.Withdraw(b.Plans[i], c, local)
		}
		b.permits = append(b.permits, w)
	}
	s.settle(ctx, local, b.Charges)
	for i, w := range b.permits {
		if w != (permit.Withdrawal{}) {
			s.Permits.Returned(w, b.Charges[i].Err, false)
		}
	}
}

// settle has a store settle charges, and sets the error of each.
func (s *Settler) settle(ctx context.Context, local bool, charges []terms.Charge) {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	store := s.Stores[0]
	if local {
		store = s.Stores[1]
	}
	err := store.Settle(ctx, charges)
	for i := range charges {
		if c := &charges[i]; err != nil {
			c.Err = private.Hide(err)
		} else if c.Err != nil {
			c.Err = private.Hide(c.Err)
		}
	}
}

// Along is Now, and reports errors to Unsettled.
func (s *Settler) Along(ctx context.Context, local bool, b *Batch) {
	s.Now(ctx, local, b)
	for i := range b.Charges {
		if err := b.Charges[i].Err; err != nil {
			s.Unsettled(ctx, b.Plans[i], err)
		}
	}
}
