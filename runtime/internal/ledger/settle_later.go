package ledger

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxUnderWay is how many charges are on their way back at most: about 1 MiB.
	maxUnderWay = 4096
	// queueBatch is how many are settled in one request of the queue's.
	queueBatch = terms.MaxWork / terms.Work
)

// A pendingCharge is on its way back, and a [terms.Returned]: nobody waits until it is settled.
type pendingCharge struct {
	ledger   *Ledger
	ctx      context.Context // its values are the call's
	plan     *plan.Plan
	charge   terms.Charge
	key      []byte // whose memory is used again
	permit   withdrawal
	turnAsks bool // calls that wait for its room ask with the return
	final    bool // it is settled, or cannot be
}

var pendingChargePool = sync.Pool{New: func() any { return new(pendingCharge) }}

// A queue counts charges on their way back. Those that the store did not take back at once are
// settled by its goroutine, and those that could not be settled are reported by it. The zero
// value is empty.
type queue struct {
	work background.Queue[*pendingCharge]

	mu      sync.Mutex
	pending int
	closed  bool
	idle    chan struct{} // closed when pending is 0; nil: nobody waits for that
}

// SettleLater has charges settled soon, or at once if that costs no trip or too many are under way. It
// reports errors to Unsettled.
func (l *Ledger) SettleLater(ctx context.Context, b *Settlement) {
	l.prepare(ctx, b)
	if len(b.Charges) == 0 { // nothing is left to settle
		return
	}
	if b.Local || l.InMemory || !l.begin(len(b.Charges), maxUnderWay) {
		l.settleNow(ctx, b)
		l.Report(ctx, b)
		return
	}
	for i := range b.Charges {
		l.send(ctx, b.Plans[i], &b.Charges[i])
	}
}

// giveBack has units of a charge given back later, by the plan of a lease. After Close it does
// so itself.
func (l *Ledger) giveBack(p *plan.Plan, c terms.Charge) {
	ctx := context.Background()
	if l.begin(1, math.MaxInt) { // there are no more of them than leases
		l.send(ctx, p, &c)
		return
	}
	b := NewSettlement()
	defer b.Free()
	b.add(p, c)
	l.settleNow(ctx, b)
	l.Report(ctx, b)
}

// begin notes that so many charges are about to be sent. It returns false, and has done
// nothing, if more than most would be under way or the queue is closed.
func (l *Ledger) begin(n, most int) bool {
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.pending > most-n {
		return false
	}
	q.pending += n
	return true
}

// send has the store take a charge back, or the queue if that cannot. Calls that wait for its room ask at
// once in the first case, behind the return, and else when it is settled.
func (l *Ledger) send(ctx context.Context, p *plan.Plan, c *terms.Charge) {
	r := l.withdrawn(ctx, p, c)
	if l.Returner == nil {
		l.queue.work.Add(r)
		return
	}
	back := r.charge
	back.Key = c.Key // the return may be over before it is looked at, and its memory used again
	r.turnAsks = true
	if !l.Returner.Return(&r.charge, r) {
		r.turnAsks = false
		l.queue.work.Add(r)
	} else {
		l.wake(&back)
	}
}

// withdrawn returns a copy of a charge that is on its way back. Its permits are no longer renewed.
func (l *Ledger) withdrawn(ctx context.Context, p *plan.Plan, c *terms.Charge) *pendingCharge {
	r := pendingChargePool.Get().(*pendingCharge)
	*r = pendingCharge{ledger: l, ctx: ctx, plan: p, charge: *c, key: append(append(r.key[:0], c.Key...), c.Tenant...)}
	r.charge.Key, r.charge.Tenant = r.key[:len(c.Key):len(c.Key)], r.key[len(c.Key):]
	if c.Lapses() {
		r.permit = l.Permits.withdraw(p, &r.charge, false)
	}
	return r
}

func (c *pendingCharge) Done(err error) {
	c.recordReturn(err)
	if err != nil {
		c.charge.Err, c.final = private.Hide(err), true
		c.ledger.queue.work.Add(c) // observers may take as long as they like
		return
	}
	c.ledger.end(c)
}

// recordReturn has the permits of a charge go on, or be returned again.
func (c *pendingCharge) recordReturn(err error) {
	if c.permit != (withdrawal{}) {
		c.ledger.Permits.recordReturn(c.permit, err)
	}
	if err == nil && !c.turnAsks {
		c.ledger.wake(&c.charge)
	}
}

// end notes that a charge is not under way any more.
func (l *Ledger) end(r *pendingCharge) {
	*r = pendingCharge{key: r.key}
	pendingChargePool.Put(r)
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending--
	if q.pending == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// settleQueued settles charges or reports them, and settles as many together as one request holds.
func (l *Ledger) settleQueued(all []*pendingCharge) {
	for next := range slices.Chunk(all, queueBatch) {
		l.settleBatch(next)
		for _, r := range next {
			if !r.final {
				r.recordReturn(r.charge.Err)
			}
			if r.charge.Err != nil {
				l.Unsettled(r.ctx, r.plan.Rule, r.charge.Err)
			}
			l.end(r)
		}
	}
}

// settleBatch settles those charges that are not over.
func (l *Ledger) settleBatch(these []*pendingCharge) {
	var open []*pendingCharge
	var charges []terms.Charge
	for _, r := range these {
		if !r.final {
			open, charges = append(open, r), append(charges, r.charge)
			r.charge.Err = errStorePanicked // unless the store returns
		}
	}
	if len(open) == 0 {
		return
	}
	defer l.Contain()
	l.settle(context.Background(), false, charges)
	for i, r := range open {
		r.charge.Err = charges[i].Err
	}
}

// close returns when no charge is under way. Later ones are settled by their callers. The error
// is non-nil if that is not within a time.
func (q *queue) close(within time.Duration) error {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	if idle == nil && q.pending > 0 {
		idle = make(chan struct{})
		q.idle = idle
	}
	q.mu.Unlock()
	if idle != nil && !clock.Await(idle, within) {
		return errUnsettled
	}
	return nil
}

var errUnsettled = errors.New("some decisions could not be settled in time: their costs stay as they were reserved")
