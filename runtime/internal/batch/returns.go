package batch

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Return has a charge settled that no caller waits for, see [terms.Returner]. It goes with the
// next batch, ahead of what that takes, or by itself after a moment. What is asked about its key
// later does not leave in another batch until it is answered, since Redis might execute that
// batch before.
func (b *Batcher) Return(c *terms.Charge, slot int, done terms.Returned) bool {
	arrived := clock.Now()
	permission, ok := b.Breaker.Allow(arrived)
	if !ok {
		return false
	}
	w := NewWaiter(script.Settle, arrived)
	*w.Charge() = *c
	w.SetKey(c.Key)
	w.EndCall(false)
	w.Seal()
	w.SetSlot(slot)
	w.permission, w.due, w.returned = permission, arrived+b.cfg.Timeout, done
	if !permission.Probe() {
		w.rests = arrived + min(restTime, b.cfg.Timeout/10)
	}
	if m := b.cfg.Denials; m != nil {
		m.Forget(c.Key)
	}
	b.mu.Lock()
	room := b.arrive(w)
	if room {
		b.enqueue(w)
	}
	b.mu.Unlock()
	if !room {
		b.Breaker.Cancel(permission)
		w.Free()
	}
	return room
}

// end tells of a return that is over, and why it may not be settled. A waiter whose time was
// over may still be written to, and is left behind.
func (b *Batcher) end(w *Waiter, err error) {
	done, late := w.returned, w.late
	if !late {
		err = cmp.Or(err, w.Calls[0].Err)
	}
	if err != nil {
		b.cfg.Kept(err)
	}
	if !late {
		w.Free()
	}
	done.Done(err)
}

// rest notes one more return that does not begin a batch. So many do as fill one.
func (b *Batcher) rest() {
	if b.resting++; b.resting >= maxResting {
		for _, w := range b.waiting {
			w.rests = 0
		}
		b.resting = 0
	}
}

// wakeResting lets returns begin a batch that have waited for one for long enough.
func (b *Batcher) wakeResting(now time.Duration) {
	for _, w := range b.held {
		if w.rests <= now {
			w.rests = 0
		}
	}
	for i := 0; b.resting > 0 && i < len(b.waiting); i++ {
		if w := b.waiting[i]; w.rests != 0 && w.rests <= now {
			w.rests = 0
			b.resting--
		}
	}
}

// fits reports whether a batch has room for a waiter and all returns that wait for one.
func (b *Batcher) fits(w *Waiter) bool {
	work := w.work
	for _, o := range b.waiting {
		work += o.work + terms.Work // it may need a script of its own
	}
	return work <= terms.MaxWork
}

// isBusy reports whether a waiter is to wait, since a key of it is busy: a return or a renewal of
// the key is under way, or a waiter with the key is held for that reason. So what is asked
// about a key is executed in the order of its arrival.
func (b *Batcher) isBusy(w *Waiter) bool {
	if w.hurries {
		return false
	}
	for i := range w.charges {
		if b.busy[hashOf(w.charges[i].Key)] > 0 {
			return true
		}
	}
	return false
}

func hashOf(key []byte) uint64 { return maphash.Bytes(indexSeed, key) }

// mark counts the keys of a waiter as busy n times more.
func (b *Batcher) mark(w *Waiter, n int) {
	for i := range w.charges {
		b.count(hashOf(w.charges[i].Key), n)
	}
}

func (b *Batcher) count(hash uint64, n int) {
	if b.busy == nil {
		b.busy = make(map[uint64]int)
	}
	if n += b.busy[hash]; n == 0 {
		delete(b.busy, hash)
	} else {
		b.busy[hash] = n
	}
}

// hold keeps a waiter apart until what makes its keys busy is over.
func (b *Batcher) hold(w *Waiter) {
	b.held = append(b.held, w)
	b.mark(w, 1)
	b.schedule(min(w.next(b.linger), b.patienceOf(w)), clock.Now())
}

// patienceOf returns until when a waiter is held: for half of its time, and for no longer than
// leaves it the time of a trip and a half.
func (b *Batcher) patienceOf(w *Waiter) time.Duration {
	recent := time.Duration(b.recent.Load())
	return w.arrived + min(b.cfg.Timeout/2, max(0, b.cfg.Timeout-recent*3/2))
}

// hurry lets waiters go that were held for long enough. The server takes unusually long, or is
// so far away that there is no time for two trips, one after the other.
func (b *Batcher) hurry(now time.Duration, soonest func(time.Duration)) {
	late := false
	for _, w := range b.held {
		if at := b.patienceOf(w); at > now {
			soonest(at)
		} else {
			w.hurries, late = true, true
		}
	}
	if late {
		b.letGo()
	}
}

// letGo returns the waiters that are held to their places in the queue. Those with keys that
// are still busy are found out when a batch is made.
func (b *Batcher) letGo() {
	if len(b.held) == 0 {
		return
	}
	for _, w := range b.held {
		if b.mark(w, -1); w.rests != 0 {
			b.resting++
		}
	}
	b.waiting = append(b.waiting, b.held...)
	b.held = nil
	slices.SortFunc(b.waiting, func(x, y *Waiter) int { return cmp.Compare(x.place, y.place) })
}

// occupy notes that a batch makes the keys of one of its waiters busy.
func (b *Batcher) occupy(own *batch, w *Waiter) {
	for i := range w.charges {
		hash := hashOf(w.charges[i].Key)
		own.keys = append(own.keys, hash)
		b.count(hash, 1)
	}
}

// vacate undoes occupy when a batch is over, or overdue.
func (b *Batcher) vacate(own *batch) {
	for _, hash := range own.keys {
		b.count(hash, -1)
	}
	own.keys = own.keys[:0]
	b.letGo()
}
