package ledger

import (
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// watch sees to it that a lease is looked at when a grant of it ends. It may be
// called while the lease's mu is held.
func (t *Leases) watch(e *lease, end time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[e] = struct{}{}
	t.schedule(end)
}

// schedule sees to it that a round begins at an instant, or before. The caller holds
// mu.
func (t *Leases) schedule(due time.Duration) {
	if !t.work.Closed() {
		t.alarm.set(due)
	}
}

// round ends the grants whose time is over.
func (t *Leases) round() {
	if !t.work.Begin() {
		return
	}
	defer t.work.End()
	t.mu.Lock()
	t.alarm.dueTime = 0
	looked := make([]*lease, 0, len(t.active))
	for e := range t.active {
		looked = append(looked, e)
	}
	clear(t.active)
	t.mu.Unlock()
	for _, e := range looked {
		if end := e.expire(t, clock.Now()); end != 0 {
			t.watch(e, end)
		}
	}
}

// expire ends the grants whose time is over, and returns the instant at which the
// next one ends, or 0 if there is none.
func (e *lease) expire(t *Leases, now time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.grant.Load()
	for g != nil && now >= g.end {
		next := g.next.Load()
		e.grant.Store(next)
		e.retire(t, g)
		g = next
	}
	if g == nil {
		return 0
	}
	return g.end
}

// Drop forgets all that this process holds of a key, which is reset. The store will
// not know of it any more, so nothing is given back.
func (t *Leases) Drop(key []byte) {
	t.table.each(key, func(e *lease) {
		e.mu.Lock()
		e.reset = true
		for g := e.grant.Load(); g != nil; g = g.next.Load() {
			g.close()
		}
		e.grant.Store(nil)
		e.mu.Unlock()
		t.table.remove(e)
	})
}

// close ends all leases, and waits for requests under way for no longer than a time.
// Calls are then decided by the store. Nil has no leases.
func (t *Leases) close(within time.Duration) {
	if t == nil {
		return
	}
	t.work.CloseWithin(within)
	t.cancel()
	t.work.Close()
	t.mu.Lock()
	t.alarm.stop()
	looked := t.active
	t.active = map[*lease]struct{}{}
	t.mu.Unlock()
	for e := range looked {
		e.expire(t, math.MaxInt64)
	}
}
