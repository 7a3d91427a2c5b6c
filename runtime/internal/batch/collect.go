package batch

import (
	"runtime"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

// gather has a caller send a batch of all who wait. Those come along that have been told
// a moment ago and call again. It unlocks the batcher.
func (b *Batcher) gather(w *Waiter) *batch {
	w.lazy = false
	b.inFlight++
	b.gathering = true
	b.queue(w)
	b.mu.Unlock()
	own := batches.Get().(*batch)
	own.gathers = true
	return own
}

// startBase starts a flush loop if somebody waits and fewer are under way than
// may be at any time.
func (b *Batcher) startBase() bool {
	if len(b.waiting) == b.resting || b.gathering || b.inFlight >= baseInFlight || b.failing && b.inFlight > 0 {
		return false
	}
	b.start()
	return true
}

// start starts a flush loop.
func (b *Batcher) start() {
	b.inFlight++
	go b.flush(batches.Get().(*batch))
}

// collect fills a batch from the front of the queue, which then has so long for its
// connection and answer. It returns false if nobody
// waits, and then the flush loop ends. So does one beyond those that may be under
// way at any time, unless somebody has lingered: else batches to a distant Redis
// would become many and small, and none would be left for who lingers.
func (b *Batcher) collect(own *batch, patience time.Duration) bool {
	if b.crowded.Load() > 0 {
		// The callers of the last batch run first. Those that call again come
		// along, and need no batch of their own. It takes two turns until all have
		// run that another processor has taken over.
		runtime.Gosched()
		runtime.Gosched()
	}
	for {
		b.mu.Lock()
		if own.gathers {
			own.gathers, b.gathering = false, false
		}
		n := 0
		if b.inFlight <= baseInFlight || b.lingered(clock.Now()) {
			n = b.pick(own)
		}
		if n == 0 {
			b.inFlight--
			b.mu.Unlock()
			return false
		}
		b.depart(own, clock.Now(), patience)
		b.mu.Unlock()

		n -= b.dropDenied(own)
		if taken := own.load(); taken < n {
			b.mu.Lock()
			b.putBack(own, taken)
			if !b.startBase() && b.lingering(own.sent) {
				b.start()
			}
			b.mu.Unlock()
		}
		if len(own.groups) > 0 {
			return true
		}
		if kept, _ := b.release(own, unsent, 0); !kept { // all have given up
			return false
		}
	}
}

// pick moves waiters from the front of the queue to a batch, but those with a busy key to the
// others that have one. It returns how many the batch has: none if nobody begins one.
func (b *Batcher) pick(own *batch) int {
	own.waiters = own.waiters[:0]
	for len(own.waiters) == 0 && len(b.waiting) > b.resting {
		n := min(len(b.waiting), maxWaiters)
		for _, w := range b.waiting[:n] {
			if w.rests != 0 {
				b.resting--
			}
			if len(b.busy) > 0 && b.isBusy(w) {
				b.hold(w)
			} else {
				own.waiters = append(own.waiters, w)
			}
		}
		b.waiting = slices.Delete(b.waiting, 0, n)
	}
	return len(own.waiters)
}

// putBack moves the waiters of a batch from the n-th on back to the front of the queue.
func (b *Batcher) putBack(own *batch, n int) {
	b.waiting = slices.Insert(b.waiting, 0, own.waiters[n:]...)
	own.waiters = slices.Delete(own.waiters, n, len(own.waiters))
	if len(own.keys) > 0 {
		b.vacate(own)
	}
	b.board(own)
}

// lingering reports whether one more batch is due, for a caller that has waited
// for long enough.
func (b *Batcher) lingering(now time.Duration) bool {
	limit := baseInFlight + 1
	if b.far() {
		limit = b.limit
	}
	return !b.failing && b.inFlight < limit && b.lingered(now)
}

// lingered reports whether a caller has waited for long enough.
func (b *Batcher) lingered(now time.Duration) bool {
	for _, w := range b.waiting {
		if w.state.Load() == pending && w.rests == 0 {
			return w.arrived+b.linger <= now
		}
	}
	return false
}

// dropDenied takes those out of a batch that is about to be sent whose calls are
// denied by what was learned since they arrived, and tells them. Redis need not
// say so again. It returns how many they are.
func (b *Batcher) dropDenied(own *batch) int {
	m := b.cfg.Denials
	if m == nil || m.Empty() {
		return 0
	}
	own.denied = own.denied[:0]
	for _, w := range own.waiters {
		if w.op == script.Take && w.state.Load() == pending && m.DeniedSince(w.Calls, w.arrived) {
			own.denied = append(own.denied, w)
		}
	}
	if len(own.denied) == 0 {
		return 0
	}
	b.unregister(own, own.denied)
	for i, w := range own.denied {
		permission := w.permission // the waiter is its caller's once that is told
		if w.finish(nil, false) {
			b.Breaker.Cancel(permission)
		}
		own.denied[i] = nil
	}
	return len(own.denied)
}

// unregister takes waiters out of a batch, which are in the order that they have
// there. Only then may their callers be told, who use them again.
func (b *Batcher) unregister(own *batch, gone []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stay := own.waiters[:0]
	for _, w := range own.waiters {
		if len(gone) > 0 && w == gone[0] {
			gone = gone[1:]
			continue
		}
		stay = append(stay, w)
	}
	clear(own.waiters[len(stay):])
	own.callers -= len(own.waiters) - len(stay)
	own.waiters = stay
}
