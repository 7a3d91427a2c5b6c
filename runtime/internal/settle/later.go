package settle

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxUnderWay is how many charges are on their way back at most: about 1 MiB.
	maxUnderWay = 4096
	// together is how many are settled in one request of the queue's.
	together = terms.MaxWork / terms.Work
)

// A back is a charge on its way back: nobody waits until it is settled.
type back struct {
	settler *Settler
	ctx     context.Context // its values are the call's
	plan    *plan.Plan
	charge  terms.Charge
	key     []byte // whose memory is used again
	permit  permit.Withdrawal
	asks    bool // calls that wait for the permit ask with the return
	over    bool // it is settled, or cannot be
}

var backs = sync.Pool{New: func() any { return new(back) }}

// A queue counts charges on their way back. Those that the store did not take back at once are
// settled by its goroutine, and those that could not be settled are reported by it. The zero
// value is empty.
type queue struct {
	work background.Queue[*back]

	mu       sync.Mutex
	underWay int
	closed   bool
	idle     chan struct{} // closed when underWay is 0; nil: nobody waits for that
}

// Later has charges of the limiter's store settled soon. If too many are under way already it
// settles these itself. It reports errors to Unsettled.
func (s *Settler) Later(ctx context.Context, b *Batch) {
	if !s.begin(len(b.Charges), maxUnderWay) {
		s.Along(ctx, false, b)
		return
	}
	for i := range b.Charges {
		s.send(ctx, b.Plans[i], &b.Charges[i])
	}
}

// GiveBack has units of a charge given back later, by the plan of a lease. After Close it does
// so itself.
func (s *Settler) GiveBack(p *plan.Plan, c terms.Charge) {
	ctx := context.Background()
	if s.begin(1, math.MaxInt) { // there are no more of them than leases
		s.send(ctx, p, &c)
		return
	}
	b := NewBatch()
	defer b.Free()
	b.add(p, c)
	s.Along(ctx, false, b)
}

// begin notes that so many charges are about to be sent. It returns false, and has done
// nothing, if more than most would be under way or the settler is closed.
func (s *Settler) begin(n, most int) bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.underWay > most-n {
		return false
	}
	if q.underWay += n; q.work.Do == nil {
		q.work.Do = s.work
	}
	return true
}

// send has the store take a charge back, or the queue if that cannot.
func (s *Settler) send(ctx context.Context, p *plan.Plan, c *terms.Charge) {
	r := backs.Get().(*back)
	*r = back{settler: s, ctx: ctx, plan: p, charge: *c, key: append(r.key[:0], c.Key...)}
	r.charge.Key = r.key
	lapses := c.Lapses()
	if lapses {
		r.permit = s.Permits.Withdraw(p, &r.charge, false)
		r.asks = s.Returner != nil
	}
	if s.Returner == nil || !s.Returner.Return(&r.charge, r) {
		r.asks = false
		s.queue.work.Add(r)
	} else if lapses && s.Permits.Waiting() {
		s.Permits.Wake(c.Key)
	}
}

// Done implements [terms.Returned].
func (r *back) Done(err error) {
	if r.returned(err); err != nil {
		r.charge.Err, r.over = private.Hide(err), true
		r.settler.queue.work.Add(r) // observers may take as long as they like
		return
	}
	r.settler.end(r)
}

// returned has the permits of a charge go on, or be returned again.
func (r *back) returned(err error) {
	if r.permit != (permit.Withdrawal{}) {
		r.settler.Permits.Returned(r.permit, err, r.asks)
	}
}

// end notes that a charge is not under way any more.
func (s *Settler) end(r *back) {
	*r = back{key: r.key}
	backs.Put(r)
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay--; q.underWay == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// work settles charges or reports them, and settles as many together as one request holds.
func (s *Settler) work(all []*back) {
	for next := range slices.Chunk(all, together) {
		s.settleThese(next)
		for _, r := range next {
			if !r.over {
				r.returned(r.charge.Err)
			}
			if r.charge.Err != nil {
				s.Unsettled(r.ctx, r.plan, r.charge.Err)
			}
			s.end(r)
		}
	}
}

// settleThese settles those charges that are not over.
func (s *Settler) settleThese(these []*back) {
	var open []*back
	var charges []terms.Charge
	for _, r := range these {
		if !r.over {
			open, charges = append(open, r), append(charges, r.charge)
			r.charge.Err = errPanicked // unless the store returns
		}
	}
	if len(open) == 0 {
		return
	}
	defer s.Contain()
	s.settle(context.Background(), false, charges)
	for i, r := range open {
		r.charge.Err = charges[i].Err
	}
}

// Close returns when no charge is under way. Later ones are settled by their callers. The error
// is non-nil if that is not within a time.
func (s *Settler) Close(within time.Duration) error {
	q := &s.queue
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	if idle == nil && q.underWay > 0 {
		idle = make(chan struct{})
		q.idle = idle
	}
	q.mu.Unlock()
	if idle != nil && !clock.Await(idle, within) {
		return errUnsettled
	}
	return nil
}

var (
	errPanicked  = private.New("the store panicked")
	errUnsettled = errors.New("some decisions could not be settled in time: their costs stay as they were reserved")
)
