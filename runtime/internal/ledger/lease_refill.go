package ledger

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// leaseShare is how many times what a process asks for must be left of a limit,
	// so that others do not starve.
	leaseShare = spec.LeaseShare
	// callsEach is how many calls a grant has to be enough for.
	callsEach = spec.LeaseCalls
	// refillTries is how often a process asks in one go: again for less if what it
	// believed to be left was not.
	refillTries = 2
	// refillPause is how long a process asks for no grant when it was not worth one, or
	// there was none to be had.
	refillPause = time.Millisecond
	// refillFailPause is how long it asks for none at least when the store gave no answer.
	refillFailPause = 50 * time.Millisecond
	// lateTrips is for how many times as long as its trip took no grant is asked for
	// after one that came when its time was over.
	lateTrips = 10
)

// Leases are those of a limiter. A grant is asked for in a goroutine of its own, so
// that no call waits for it, and a timer ends those that nobody uses.
type Leases struct {
	ledger *Ledger
	table  leaseTable

	ctx    context.Context // of requests
	cancel context.CancelFunc
	work   background.Group // requests and rounds of the alarm

	mu     sync.Mutex
	active map[*lease]struct{} // those with grants
	alarm  alarm
}

// newLeases returns those of a ledger, whose store charges the units.
func newLeases(l *Ledger) *Leases {
	t := &Leases{ledger: l, active: map[*lease]struct{}{}}
	t.alarm.action, t.table.seed = t.round, maphash.MakeSeed()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Learn notes what the store has answered to a call by a plan: a rule that is used so
// much gets a grant for the next ones.
func (t *Leases) Learn(p *plan.Plan, c *terms.Charge) {
	if c.Recalled || p.Lease == 0 || t.work.Closed() {
		return
	}
	e := t.table.findOrAdd(c.Key, p)
	if e == nil {
		return
	}
	now := clock.Now()
	e.mu.Lock()
	e.answerTime, e.remaining = now, c.Remaining
	if c.At != 0 {
		e.usage.add(c.Cost, now, p.Lease)
	}
	e.mu.Unlock()
	if g := e.grant.Load(); int64(now) >= e.earliestAsk.Load() && (g == nil || g.next.Load() == nil) {
		e.ask(t, c.Cost, now)
	}
}

// ask has a grant asked for, for calls of a cost, unless one is on its way or the
// key was not used enough.
func (e *lease) ask(t *Leases, cost int64, now time.Duration) {
	if e.pending.Load() || !e.pending.CompareAndSwap(false, true) {
		return
	}
	n := e.wantedUnits(cost, now)
	if n == 0 || !t.work.Begin() {
		e.earliestAsk.Store(int64(now + refillPause))
		e.pending.Store(false)
		return
	}
	go e.refill(t, n, cost)
}

// wantedUnits returns how many units to ask for: three quarters of what was used in the
// time of a lease, so that a grant is used up before its time is over, and no more
// than a share of what was left. It returns 0 if that is not worth a grant.
func (e *lease) wantedUnits(cost int64, now time.Duration) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	for g := e.grant.Load(); g != nil; g = g.next.Load() {
		e.count(g, g.unitsLeft.Load(), now)
	}
	n := e.usage.recent(now, e.plan.Lease)
	return e.grantUnits(n-n/4, cost)
}

// grantUnits returns as much of n units as the limit has to spare, or 0 if that is not
// worth a grant. The caller holds mu.
func (e *lease) grantUnits(n, cost int64) int64 {
	n = min(n, e.remaining/leaseShare, e.plan.Most)
	if e.reset || n < callsEach*cost {
		return 0
	}
	return n
}

// refill asks the store for units.
func (e *lease) refill(t *Leases, n, cost int64) {
	defer t.work.End()
	defer e.pending.Store(false)
	defer t.ledger.Contain()
	e.earliestAsk.Store(int64(clock.Now() + max(e.plan.Lease, refillFailPause))) // if it fails
	for range refillTries {
		asked := clock.Now()
		charges := make([]terms.Charge, 1)
		e.plan.Charge(&charges[0], []byte(e.key), n)
		calls := []terms.Call{{Charges: charges, Arrived: asked}}
		if t.ledger.Stores[0].Take(t.ctx, calls) != nil || calls[0].Err != nil {
			return // units that were charged nevertheless leave with the window
		}
		now, c := clock.Now(), &charges[0]
		e.mu.Lock()
		e.answerTime, e.remaining = now, c.Remaining
		if c.At != 0 {
			e.keep(t, c, asked, now)
			e.mu.Unlock()
			trip := now - asked
			switch {
			case trip >= e.plan.Lease:
				e.earliestAsk.Store(int64(now + lateTrips*trip))
			case e.plan.Terms.Period != nil && c.ResetAfter <= returnTime(trip):
				e.earliestAsk.Store(int64(now + c.ResetAfter))
			default:
				e.earliestAsk.Store(0)
			}
			return
		}
		n = e.grantUnits(n, cost)
		e.mu.Unlock()
		if n == 0 {
			break
		}
	}
	e.earliestAsk.Store(int64(clock.Now() + refillPause))
}

// returnTime returns how long it may take to give units back, by how long a trip took: a timer and
// a queue come before.
func returnTime(trip time.Duration) time.Duration { return 10*time.Millisecond + 4*trip }

// keep keeps the units of a charge that the store was asked for at an instant. Their
// time runs from then, which is never after the store charged them. The caller holds
// mu.
func (e *lease) keep(t *Leases, c *terms.Charge, asked, now time.Duration) {
	length := e.plan.Lease
	if e.plan.Terms.Is(algorithm.Resets) {
		length = min(length, c.ResetAfter) // they are of this window
	}
	if e.plan.Terms.Period != nil { // and what is left of them comes back before its count is final
		length = min(length, c.ResetAfter-returnTime(now-asked))
	}
	lead := min(length/2, max(length/leaseShare, 2*(now-asked)))
	g := &grant{
		end: asked + length, refillTime: asked + length - lead,
		refillUnits: c.Cost / 4, chargedUnits: c.Cost, chargeTime: c.At, mark: c.Mark, remaining: c.Remaining,
		resetTime: asked + c.ResetAfter,
	}
	g.unitsLeft.Store(c.Cost)
	last := e.grant.Load()
	switch {
	case e.reset:
		return
	case now >= g.end || t.work.Closed():
		e.retire(t, g)
		return
	case last == nil:
		e.grant.Store(g)
	case now >= last.end || last.unitsLeft.Load() <= 0:
		e.grant.Store(g)
		e.retire(t, last)
	default:
		last.next.Store(g)
	}
	t.watch(e, g.end)
}
