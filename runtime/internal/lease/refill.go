package lease

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// share is how many times what a process asks for must be left of a limit,
	// so that others do not starve.
	share = spec.LeaseShare
	// callsEach is how many calls a grant has to be enough for.
	callsEach = spec.LeaseCalls
	// tries is how often a process asks in one go: again for less if what it
	// believed to be left was not.
	tries = 2
	// shortPause is how long a process asks for no grant when it was not worth one, or
	// there was none to be had.
	shortPause = time.Millisecond
	// failPause is how long it asks for none at least when the store gave no answer.
	failPause = 50 * time.Millisecond
	// late is for how many times as long as its trip took no grant is asked for
	// after one that came when its time was over.
	late = 10
)

// Leases are those of a limiter. A grant is asked for in a goroutine of its own, so
// that no call waits for it, and a timer ends those that nobody uses.
type Leases struct {
	store    terms.Store
	giveBack func(*plan.Plan, terms.Charge)
	contain  func() // deferred: ends a panic of the store
	table    table

	ctx     context.Context // of requests
	cancel  context.CancelFunc
	running sync.WaitGroup // requests and rounds of the timer
	closed  atomic.Bool

	mu     sync.Mutex
	active map[*lease]struct{} // those with grants
	timer  *time.Timer
	next   time.Duration // the instant for which timer is set; 0: it is not
}

// New returns leases of which a store charges the units. It has them given back by
// giveBack, which must not wait, and calls contain, deferred, where the store may panic.
func New(store terms.Store, giveBack func(*plan.Plan, terms.Charge), contain func()) *Leases {
	t := &Leases{store: store, giveBack: giveBack, contain: contain, active: map[*lease]struct{}{}}
	t.table.seed = maphash.MakeSeed()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// begin reports whether something may begin that close has to wait for.
func (t *Leases) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return false
	}
	t.running.Add(1)
	return true
}

// Learn notes what the store has answered to a call by a plan: a rule that is used so
// much gets a grant for the next ones.
func (t *Leases) Learn(p *plan.Plan, c *terms.Charge) {
	if c.Recalled || p.Lease == 0 || t.closed.Load() {
		return
	}
	e := t.table.enter(c.Key, p)
	if e == nil {
		return
	}
	now := clock.Now()
	e.mu.Lock()
	e.touched, e.room = now, c.Remaining
	if c.At != 0 {
		e.usage.add(c.Cost, now, p.Lease)
	}
	e.mu.Unlock()
	if g := e.current.Load(); int64(now) >= e.notBefore.Load() && (g == nil || g.next.Load() == nil) {
		e.ask(t, c.Cost, now)
	}
}

// ask has a grant asked for, for calls of a cost, unless one is on its way or the
// key was not used enough.
func (e *lease) ask(t *Leases, cost int64, now time.Duration) {
	if e.asking.Load() || !e.asking.CompareAndSwap(false, true) {
		return
	}
	n := e.wanted(cost, now)
	if n == 0 || !t.begin() {
		e.notBefore.Store(int64(now + shortPause))
		e.asking.Store(false)
		return
	}
	go e.refill(t, n, cost)
}

// wanted returns how many units to ask for: three quarters of what was used in the
// time of a lease, so that a grant is used up before its time is over, and no more
// than a share of what was left. It returns 0 if that is not worth a grant.
func (e *lease) wanted(cost int64, now time.Duration) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	for g := e.current.Load(); g != nil; g = g.next.Load() {
		e.count(g, g.left.Load(), now)
	}
	n := e.usage.lately(now, e.plan.Lease)
	return e.worth(n-n/4, cost)
}

// worth returns as much of n units as the limit has to spare, or 0 if that is not
// worth a grant. The caller holds mu.
func (e *lease) worth(n, cost int64) int64 {
	n = min(n, e.room/share, e.plan.Most)
	if e.dropped || n < callsEach*cost {
		return 0
	}
	return n
}

// refill asks the store for units.
func (e *lease) refill(t *Leases, n, cost int64) {
	defer t.running.Done()
	defer e.asking.Store(false)
	defer t.contain()
	e.notBefore.Store(int64(clock.Now() + max(e.plan.Lease, failPause))) // if it fails
	for range tries {
		asked := clock.Now()
		charges := make([]terms.Charge, 1)
		e.plan.Charge(&charges[0], []byte(e.key), n)
		calls := []terms.Call{{Charges: charges, Arrived: asked}}
		if t.store.Take(t.ctx, calls) != nil || calls[0].Err != nil {
			return // units that were charged nevertheless leave with the window
		}
		now, c := clock.Now(), &charges[0]
		e.mu.Lock()
		e.touched, e.room = now, c.Remaining
		if c.At != 0 {
			e.keep(t, c, asked, now)
			e.mu.Unlock()
			switch trip := now - asked; {
			case trip >= e.plan.Lease:
				e.notBefore.Store(int64(now + late*trip))
			case e.plan.Terms.Algorithm == terms.Calendar && c.ResetAfter <= returns(trip):
				e.notBefore.Store(int64(now + c.ResetAfter))
			default:
				e.notBefore.Store(0)
			}
			return
		}
		n = e.worth(n, cost)
		e.mu.Unlock()
		if n == 0 {
			break
		}
	}
	e.notBefore.Store(int64(clock.Now() + shortPause))
}

// returns returns how long it may take to give units back, by how long a trip took: a timer and
// a queue come before.
func returns(trip time.Duration) time.Duration { return 10*time.Millisecond + 4*trip }

// keep keeps the units of a charge that the store was asked for at an instant. Their
// time runs from then, which is never after the store charged them. The caller holds
// mu.
func (e *lease) keep(t *Leases, c *terms.Charge, asked, now time.Duration) {
	length := e.plan.Lease
	switch e.plan.Terms.Algorithm {
	case terms.FixedWindow:
		length = min(length, c.ResetAfter) // they are of this window
	case terms.Calendar: // and what is left of them comes back before its count is final
		length = min(length, c.ResetAfter-returns(now-asked))
	}
	lead := min(length/2, max(length/share, 2*(now-asked)))
	g := &grant{
		end: asked + length, ahead: asked + length - lead,
		low: c.Cost / 4, units: c.Cost, at: c.At, mark: c.Mark, rest: c.Remaining, whole: asked + c.ResetAfter,
	}
	g.left.Store(c.Cost)
	switch last := e.current.Load(); {
	case e.dropped:
		return
	case now >= g.end || t.closed.Load():
		e.retire(t, g)
		return
	case last == nil:
		e.current.Store(g)
	case now >= last.end || last.left.Load() <= 0:
		e.current.Store(g)
		e.retire(t, last)
	default:
		last.next.Store(g)
	}
	t.watch(e, g.end)
}
