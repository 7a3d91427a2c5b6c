package runtime

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leaseShare is how many times what a process asks for must be left of a limit,
	// so that others do not starve.
	leaseShare = 8
	// leaseCalls is how many calls a grant has to be enough for.
	leaseCalls = 4
	// leaseTries is how often a process asks in one go: again for less if what it
	// believed to be left was not.
	leaseTries = 2
	// leasePause is how long a process asks for no grant when it was not worth one, or
	// there was none to be had.
	leasePause = time.Millisecond
	// leaseLate is for how many times as long as its trip took no grant is asked for
	// after one that came when its time was over.
	leaseLate = 10
)

// A leaser is a store whose limits a process may lease, because other processes
// share them.
type leaser interface{ leases() }

func (*RedisStore) leases() {}

// leases are those of a limiter. A grant is asked for in a goroutine of its own, so
// that no call waits for it, and a timer ends those that nobody uses.
type leases struct {
	limiter *Limiter
	table   leaseTable

	ctx     context.Context // of requests
	cancel  context.CancelFunc
	running sync.WaitGroup // requests and rounds of the timer
	closed  atomic.Bool

	mu     sync.Mutex
	active map[*lease]struct{} // those with grants
	timer  *time.Timer
	next   time.Duration // the instant for which timer is set; 0: it is not
}

func newLeases(l *Limiter) *leases {
	t := &leases{limiter: l, active: map[*lease]struct{}{}}
	t.table.seed = maphash.MakeSeed()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// begin reports whether something may begin that close has to wait for.
func (t *leases) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return false
	}
	t.running.Add(1)
	return true
}

// learn notes what the store has answered to a call: a rule that is used so much
// gets a grant for the next ones.
func (t *leases) learn(c *Charge) {
	if c.Recalled || !c.Rule.leases(c.Max) || t.closed.Load() {
		return
	}
	e := t.table.enter(c.Key, c.Rule, c.Max)
	if e == nil {
		return
	}
	now := instant()
	e.mu.Lock()
	e.touched, e.room = now, c.Remaining
	if c.At != 0 {
		e.usage.add(c.Cost, now, e.rule.Lease)
	}
	e.mu.Unlock()
	if g := e.current.Load(); int64(now) >= e.pause.Load() && (g == nil || g.next.Load() == nil) {
		e.ask(t, c.Cost, now)
	}
}

// ask has a grant asked for, for calls of a cost, unless one is on its way or the
// key was not used enough.
func (e *lease) ask(t *leases, cost int64, now time.Duration) {
	if e.asking.Load() || !e.asking.CompareAndSwap(false, true) {
		return
	}
	n := e.wanted(cost, now)
	if n == 0 || !t.begin() {
		e.pause.Store(int64(now + leasePause))
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
	n := e.usage.lately(now, e.rule.Lease)
	return e.worth(n-n/4, cost)
}

// worth returns as much of n units as the limit has to spare, or 0 if that is not
// worth a grant. The caller holds mu.
func (e *lease) worth(n, cost int64) int64 {
	n = min(n, e.room/leaseShare, e.rule.capacity(e.max), countings[e.rule.counted()].cost)
	if e.dropped || n < leaseCalls*cost {
		return 0
	}
	return n
}

// refill asks the store for units.
func (e *lease) refill(t *leases, n, cost int64) {
	defer t.running.Done()
	defer e.asking.Store(false)
	defer t.limiter.events.contain("store")
	e.pause.Store(int64(instant() + max(e.rule.Lease, DefaultTimeout))) // if it fails
	for range leaseTries {
		asked := instant()
		calls := []Call{{Charges: []Charge{{Rule: e.rule, Key: []byte(e.key), Max: e.max, Cost: n}}, arrived: asked}}
		if t.limiter.store.Take(t.ctx, calls) != nil || calls[0].Err != nil {
			return // units that were charged nevertheless leave with the window
		}
		now, c := instant(), &calls[0].Charges[0]
		e.mu.Lock()
		e.touched, e.room = now, c.Remaining
		if c.At != 0 {
			e.keep(t, c, asked, now)
			e.mu.Unlock()
			if trip := now - asked; trip >= e.rule.Lease {
				e.pause.Store(int64(now + leaseLate*trip))
			} else {
				e.pause.Store(0)
			}
			return
		}
		n = e.worth(n, cost)
		e.mu.Unlock()
		if n == 0 {
			break
		}
	}
	e.pause.Store(int64(instant() + leasePause))
}

// keep keeps the units of a charge that the store was asked for at an instant. Their
// time runs from then, which is never after the store charged them. The caller holds
// mu.
func (e *lease) keep(t *leases, c *Charge, asked, now time.Duration) {
	length := e.rule.Lease
	if e.rule.Algorithm == FixedWindow {
		length = min(length, c.ResetAfter) // they are of this window
	}
	lead := min(length/2, max(length/leaseShare, 2*(now-asked)))
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
