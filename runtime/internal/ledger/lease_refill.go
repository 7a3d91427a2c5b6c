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
func (l *Leases) Learn(p *plan.Plan, c *terms.Charge) {
	if c.Recalled || p.Lease == 0 || l.work.Closed() {
		return
	}
	e := l.table.findOrAdd(c.Key, p)
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
		e.ask(l, c.Cost, now)
	}
}

// ask has a grant asked for, for calls of a cost, unless one is on its way or the
// key was not used enough.
func (l *lease) ask(t *Leases, cost int64, now time.Duration) {
	if l.pending.Load() || !l.pending.CompareAndSwap(false, true) {
		return
	}
	n := l.wantedUnits(cost, now)
	if n == 0 || !t.work.Begin() {
		l.earliestAsk.Store(int64(now + refillPause))
		l.pending.Store(false)
		return
	}
	go l.refill(t, n, cost)
}

// wantedUnits returns how many units to ask for: three quarters of what was used in the
// time of a lease, so that a grant is used up before its time is over, and no more
// than a share of what was left. It returns 0 if that is not worth a grant.
func (l *lease) wantedUnits(cost int64, now time.Duration) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for g := l.grant.Load(); g != nil; g = g.next.Load() {
		l.count(g, g.unitsLeft.Load(), now)
	}
	n := l.usage.recent(now, l.plan.Lease)
	return l.grantUnits(n-n/4, cost)
}

// grantUnits returns as much of n units as the limit has to spare, or 0 if that is not
// worth a grant. The caller holds mu.
func (l *lease) grantUnits(n, cost int64) int64 {
	n = min(n, l.remaining/leaseShare, l.plan.Most)
	if l.reset || n < callsEach*cost {
		return 0
	}
	return n
}

// refill asks the store for units.
func (l *lease) refill(t *Leases, n, cost int64) {
	defer t.work.End()
	defer l.pending.Store(false)
	defer t.ledger.Contain()
	l.earliestAsk.Store(int64(clock.Now() + max(l.plan.Lease, refillFailPause))) // if it fails
	for range refillTries {
		asked := clock.Now()
		charges := make([]terms.Charge, 1)
		l.plan.Charge(&charges[0], []byte(l.key), n)
		calls := []terms.Call{{Charges: charges, Arrived: asked}}
		if t.ledger.Stores[0].Take(t.ctx, calls) != nil || calls[0].Err != nil {
			return // units that were charged nevertheless leave with the window
		}
		now, c := clock.Now(), &charges[0]
		l.mu.Lock()
		l.answerTime, l.remaining = now, c.Remaining
		if c.At != 0 {
			l.keep(t, c, asked, now)
			l.mu.Unlock()
			trip := now - asked
			if trip >= l.plan.Lease {
				l.earliestAsk.Store(int64(now + lateTrips*trip))
			} else if l.plan.Terms.Period != nil && c.ResetAfter <= returnTime(trip) {
				l.earliestAsk.Store(int64(now + c.ResetAfter))
			} else {
				l.earliestAsk.Store(0)
			}
			return
		}
		n = l.grantUnits(n, cost)
		l.mu.Unlock()
		if n == 0 {
			break
		}
	}
	l.earliestAsk.Store(int64(clock.Now() + refillPause))
}

// returnTime returns how long it may take to give units back, by how long a trip took: a timer and
// a queue come before.
func returnTime(trip time.Duration) time.Duration { return 10*time.Millisecond + 4*trip }

// keep keeps the units of a charge that the store was asked for at an instant. Their
// time runs from then, which is never after the store charged them. The caller holds
// mu.
func (l *lease) keep(t *Leases, c *terms.Charge, asked, now time.Duration) {
	length := l.plan.Lease
	if l.plan.Terms.Is(algorithm.Resets) {
		length = min(length, c.ResetAfter) // they are of this window
	}
	if l.plan.Terms.Period != nil { // and what is left of them comes back before its count is final
		length = min(length, c.ResetAfter-returnTime(now-asked))
	}
	lead := min(length/2, max(length/leaseShare, 2*(now-asked)))
	g := &grant{
		end: asked + length, refillTime: asked + length - lead,
		refillUnits: c.Cost / 4, chargedUnits: c.Cost, chargeTime: c.At, mark: c.Mark, remaining: c.Remaining,
		resetTime: asked + c.ResetAfter,
	}
	g.unitsLeft.Store(c.Cost)
	last := l.grant.Load()
	if l.reset {
		return
	}
	if now >= g.end || t.work.Closed() {
		l.retire(t, g)
		return
	}
	if last == nil {
		l.grant.Store(g)
	} else if now >= last.end || last.unitsLeft.Load() <= 0 {
		l.grant.Store(g)
		l.retire(t, last)
	} else {
		last.next.Store(g)
	}
	t.watch(l, g.end)
}
