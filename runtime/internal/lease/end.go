package lease

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
	if t.closed.Load() || t.next != 0 && t.next <= due {
		return
	}
	t.next = due
	wait := max(0, due-clock.Now())
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.round)
	} else {
		t.timer.Reset(wait)
	}
}

// round ends the grants whose time is over.
func (t *Leases) round() {
	if !t.begin() {
		return
	}
	defer t.running.Done()
	t.mu.Lock()
	t.next = 0
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
	g := e.current.Load()
	for g != nil && now >= g.end {
		next := g.next.Load()
		e.current.Store(next)
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
		e.dropped = true
		for g := e.current.Load(); g != nil; g = g.next.Load() {
			g.close()
		}
		e.current.Store(nil)
		e.mu.Unlock()
		t.table.remove(e)
	})
}

// Close ends all leases, and waits for requests under way for no longer than a time.
// Calls are then decided by the store. Nil has no leases.
func (t *Leases) Close(within time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.closed.Store(true)
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	clock.Await(done, within)
	t.cancel()
	<-done
	t.mu.Lock()
	looked := t.active
	t.active = map[*lease]struct{}{}
	t.mu.Unlock()
	for e := range looked {
		e.expire(t, math.MaxInt64)
	}
}
