package runtime

import "time"

// giveBack has units of a charge given back to the store, together with others. They
// stay charged until they leave the window if too much waits for that already.
func (t *leases) giveBack(rule *Rule, key []byte, max, units, at, mark int64) {
	s := settlements.Get().(*settlement)
	s.add(Charge{Rule: rule, Key: key, Max: max, Cost: units, Result: Result{At: at, Mark: mark}})
	t.limiter.unsettled.add(t.limiter, s)
	s.free()
}

// watch sees to it that a lease is looked at when a grant of it ends. It may be
// called while the lease's mu is held.
func (t *leases) watch(e *lease, end time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[e] = struct{}{}
	t.schedule(end)
}

// schedule sees to it that a round begins at an instant, or before. The caller holds
// mu.
func (t *leases) schedule(due time.Duration) {
	if t.closed.Load() || t.next != 0 && t.next <= due {
		return
	}
	t.next = due
	wait := max(0, due-instant())
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.round)
	} else {
		t.timer.Reset(wait)
	}
}

// round ends the grants whose time is over.
func (t *leases) round() {
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
		if end := e.expire(t, instant()); end != 0 {
			t.watch(e, end)
		}
	}
}

// expire ends the grants whose time is over, and returns the instant at which the
// next one ends, or 0 if there is none.
func (e *lease) expire(t *leases, now time.Duration) time.Duration {
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

// drop forgets all that this process holds of a key, which is reset. The store will
// not know of it any more, so nothing is given back.
func (t *leases) drop(key []byte) {
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

// close ends all leases, and waits for requests under way as long as a limit says.
// Calls are then decided by the store.
func (t *leases) close(limit time.Duration) {
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
	_ = await(done, limit, nil)
	t.cancel()
	<-done
	t.mu.Lock()
	looked := t.active
	t.active = map[*lease]struct{}{}
	t.mu.Unlock()
	for e := range looked {
		e.expire(t, Never)
	}
}
