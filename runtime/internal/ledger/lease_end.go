package ledger

import (
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// watch sees to it that a lease is looked at when a grant of it ends. It may be
// called while the lease's mu is held.
func (l *Leases) watch(e *lease, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[e] = struct{}{}
	l.schedule(end)
}

// schedule sees to it that a round begins at an instant, or before. The caller holds
// mu.
func (l *Leases) schedule(due time.Duration) {
	if !l.work.Closed() {
		l.alarm.set(due)
	}
}

// round ends the grants whose time is over.
func (l *Leases) round() {
	if !l.work.Begin() {
		return
	}
	defer l.work.End()
	l.mu.Lock()
	l.alarm.dueTime = 0
	looked := make([]*lease, 0, len(l.active))
	for e := range l.active {
		looked = append(looked, e)
	}
	clear(l.active)
	l.mu.Unlock()
	for _, e := range looked {
		if end := e.expire(l, clock.Now()); end != 0 {
			l.watch(e, end)
		}
	}
}

// expire ends the grants whose time is over, and returns the instant at which the
// next one ends, or 0 if there is none.
func (l *lease) expire(t *Leases, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.grant.Load()
	for g != nil && now >= g.end {
		next := g.next.Load()
		l.grant.Store(next)
		l.retire(t, g)
		g = next
	}
	if g == nil {
		return 0
	}
	return g.end
}

// Drop forgets all that this process holds of a key, which is reset. The store will
// not know of it any more, so nothing is given back.
func (l *Leases) Drop(key []byte) {
	l.table.each(key, func(e *lease) {
		e.mu.Lock()
		e.reset = true
		for g := e.grant.Load(); g != nil; g = g.next.Load() {
			g.close()
		}
		e.grant.Store(nil)
		e.mu.Unlock()
		l.table.remove(e)
	})
}

// close ends all leases, and waits for requests under way for no longer than a time.
// Calls are then decided by the store. Nil has no leases.
func (l *Leases) close(within time.Duration) {
	if l == nil {
		return
	}
	l.work.CloseWithin(within)
	l.cancel()
	l.work.Close()
	l.mu.Lock()
	l.alarm.stop()
	looked := l.active
	l.active = map[*lease]struct{}{}
	l.mu.Unlock()
	for e := range looked {
		e.expire(l, math.MaxInt64)
	}
}
