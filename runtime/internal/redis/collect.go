package redis

import (
	"runtime"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

// startBase starts a flush loop if somebody waits and fewer are under way than
// may be at any time.
func (b *batcher) startBase() bool {
	if len(b.queue) == b.idle || b.gathering || b.inFlight >= baseInFlight || b.failing && b.inFlight > 0 {
		return false
	}
	go b.flush(b.open())
	return true
}

// startLingered starts a flush loop as startBase does, or one more for a caller that has
// waited for long enough.
func (b *batcher) startLingered(now time.Duration) {
	limit := baseInFlight + 1
	if b.far() {
		limit = b.limit
	}
	if !b.startBase() && !b.failing && b.inFlight < limit && b.lingered(now) {
		go b.flush(b.open())
	}
}

// lingered reports whether a caller has waited for long enough.
func (b *batcher) lingered(now time.Duration) bool {
	for _, w := range b.queue {
		if w.state.Load() == pending && w.idleUntil == 0 {
			return w.arrived+b.linger <= now
		}
	}
	return false
}

// collect fills a batch from the front of the queue, which then has so long for its
// connection and answer. It returns false if nobody waits, and then the flush loop ends. So
// does one beyond those that may be under way at any time, unless somebody has lingered: else
// batches to a distant Redis would become many and small, and none would be left for who
// lingers.
func (b *batcher) collect(batch *batch, patience time.Duration) bool {
	if b.crowded.Load() > 0 {
		// The callers of the last batch run first. Those that call again come
		// along, and need no batch of their own. It takes two turns until all have
		// run that another processor has taken over.
		runtime.Gosched()
		runtime.Gosched()
	}
	for {
		n := b.pick(batch, patience)
		if n == 0 {
			return false
		}
		n -= b.dropRefused(batch)
		taken := batch.load()
		if taken < n {
			b.putBack(batch, taken)
		}
		if len(batch.groups) > 0 {
			return true
		}
		kept, _ := b.release(batch, unsent, 0) // all have given up
		if !kept {
			return false
		}
	}
}

// pick moves waiters from the front of the queue to a batch, but those with a busy key to the
// others that have one. It returns how many the batch has. With none, since nobody begins one,
// it is no longer in flight.
func (b *batcher) pick(batch *batch, patience time.Duration) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if batch.gathers {
		batch.gathers, b.gathering = false, false
	}
	batch.waiters = batch.waiters[:0]
	if b.inFlight <= baseInFlight || b.lingered(clock.Now()) {
		for len(batch.waiters) == 0 && len(b.queue) > b.idle {
			b.move(batch, min(len(b.queue), maxWaiters))
		}
	}
	if len(batch.waiters) == 0 {
		b.inFlight--
		return 0
	}
	b.depart(batch, clock.Now(), patience)
	return len(batch.waiters)
}

func (b *batcher) move(batch *batch, n int) {
	for _, w := range b.queue[:n] {
		if w.idleUntil != 0 {
			b.idle--
		}
		if len(b.busy) > 0 && b.isBusy(w) {
			b.hold(w)
		} else {
			batch.waiters = append(batch.waiters, w)
		}
	}
	b.queue = slices.Delete(b.queue, 0, n)
}

// putBack moves the waiters of a batch from the n-th on back to the front of the queue.
func (b *batcher) putBack(batch *batch, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = slices.Insert(b.queue, 0, batch.waiters[n:]...)
	batch.waiters = slices.Delete(batch.waiters, n, len(batch.waiters))
	if len(batch.keys) > 0 {
		b.vacate(batch)
	}
	b.board(batch)
	b.startLingered(batch.sent)
}

// dropRefused takes those out of a batch that is about to be sent whose calls are
// refused by what was learned since they arrived, and tells them. Redis need not
// say so again. It returns how many they are.
func (b *batcher) dropRefused(batch *batch) int {
	m := b.cfg.Refusals
	if m == nil || m.Empty() {
		return 0
	}
	batch.refused = batch.refused[:0]
	for _, w := range batch.waiters {
		if w.op == script.Take && w.state.Load() == pending && m.RefusedSince(w.Calls, w.arrived) {
			batch.refused = append(batch.refused, w)
		}
	}
	if len(batch.refused) == 0 {
		return 0
	}
	b.unregister(batch, batch.refused)
	for i, w := range batch.refused {
		permission := w.permission // the waiter is its caller's once that is told
		if w.finish(nil) {
			b.breaker.Cancel(permission)
		}
		batch.refused[i] = nil
	}
	return len(batch.refused)
}

// unregister takes waiters out of a batch, which are in the order that they have
// there. Only then may their callers be told, who use them again.
func (b *batcher) unregister(batch *batch, refused []*waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stay := batch.waiters[:0]
	for _, w := range batch.waiters {
		if len(refused) > 0 && w == refused[0] {
			refused = refused[1:]
		} else {
			stay = append(stay, w)
		}
	}
	clear(batch.waiters[len(stay):])
	batch.callers -= len(batch.waiters) - len(stay)
	batch.waiters = stay
}
