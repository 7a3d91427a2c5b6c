package redis

import (
	"cmp"
	"context"
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
func (b *batcher) Return(c *terms.Charge, slot int, done terms.Returned) bool {
	w := waiterOf(script.Settle, slot, []terms.Call{{Charges: []terms.Charge{*c}}}, c.Work(), clock.Now())
	if !b.allow(w) {
		return false
	}
	w.returned = done
	if !w.permission.Probe() {
		w.idleUntil = w.arrived + min(idleTime, b.cfg.Timeout/10)
	}
	if b.cfg.Refusals != nil {
		b.cfg.Refusals.Forget(c.Key)
	}
	_, ok := b.join(w)
	return ok
}

// Leave gives up a waiter of limits in shadow mode whose calls other limits do not admit. What
// the waiter is charged is given back. Leave does not wait.
func (b *batcher) Leave(w *waiter) {
	if w.state.CompareAndSwap(pending, claimed) {
		b.breaker.Cancel(w.permission)
	} else if b.Wait(context.Background(), w) == nil { // it is charged, and its batch gives nothing back
		b.giveBack(w.slot, w.unwanted(nil))
		w.Free()
	}
}

// end reports that a return is over. Err is why it may not be settled, or nil. A waiter that is
// late is not freed, since its batch may still write to it.
func (b *batcher) end(w *waiter, err error) {
	done, late := w.returned, w.late
	if !late {
		err = cmp.Or(err, w.Calls[0].Err)
	}
	if err != nil {
		b.router.count(err, 1)
	}
	if !late {
		w.Free()
	}
	done.Done(err)
}

// addIdle counts one more return that begins no batch by itself. If they fill a batch they do.
func (b *batcher) addIdle() {
	b.idle++
	if b.idle >= maxIdle {
		for _, w := range b.queue {
			w.idleUntil = 0
		}
		b.idle = 0
	}
}

// wakeIdle lets returns begin a batch that have waited for one for long enough.
func (b *batcher) wakeIdle(now time.Duration) {
	for _, w := range b.held {
		if w.idleUntil <= now {
			w.idleUntil = 0
		}
	}
	for i := 0; b.idle > 0 && i < len(b.queue); i++ {
		w := b.queue[i]
		if w.idleUntil != 0 && w.idleUntil <= now {
			w.idleUntil = 0
			b.idle--
		}
	}
}

// fits reports whether a batch has room for a waiter and all returns that wait for one.
func (b *batcher) fits(w *waiter) bool {
	work := w.work
	for _, o := range b.queue {
		work += o.work + terms.Work // it may need a script of its own
	}
	return work <= terms.MaxWork
}

// isBusy reports whether a key of a waiter is busy, so that the waiter has to be held: a return
// or a renewal of the key is under way or, if it is heavy, waits; or another waiter with the key is
// held. So what is asked about a key is executed in the order of its arrival.
func (b *batcher) isBusy(w *waiter) bool {
	if w.hurries {
		return false
	}
	for i := range w.charges {
		hash := hashOf(w.charges[i].Key)
		if n := b.busy[hash]; n > 0 && n > b.heavyLater(hash, w.place) {
			return true
		}
	}
	return false
}

func hashOf(key []byte) uint64 { return maphash.Bytes(indexSeed, key) }

// mark counts the keys of a waiter as busy n times more.
func (b *batcher) mark(w *waiter, n int) {
	for i := range w.charges {
		b.addBusy(hashOf(w.charges[i].Key), n)
	}
}

func (b *batcher) addBusy(hash uint64, n int) {
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
func (b *batcher) hold(w *waiter) {
	b.held = append(b.held, w)
	b.mark(w, 1)
	b.schedule(min(w.nextCheck(b.linger), b.holdEnd(w)), clock.Now())
}

// holdEnd returns until when a waiter is held: for half of its time at most, and so that it still
// has the time of a trip and a half.
func (b *batcher) holdEnd(w *waiter) time.Duration {
	took := time.Duration(b.lastTrip.Load())
	return w.arrived + min(b.cfg.Timeout/2, max(0, b.cfg.Timeout-took*3/2))
}

// hurry queues the waiters that were held for long enough. Then the server takes unusually long,
// or is so far away that there is no time for two trips, one after the other.
func (b *batcher) hurry(x *expiry) {
	late := false
	for _, w := range b.held {
		end := b.holdEnd(w)
		if end > x.now {
			x.wake(end)
		} else {
			w.hurries, late = true, true
		}
	}
	if late {
		b.letGo()
	}
}

// letGo moves all waiters that are held to their places in the queue. Those whose keys are still
// busy are held again when a batch is made.
func (b *batcher) letGo() {
	if len(b.held) == 0 {
		return
	}
	for _, w := range b.held {
		b.mark(w, -1)
		if w.idleUntil != 0 {
			b.idle++
		}
	}
	b.queue = append(b.queue, b.held...)
	b.held = nil
	slices.SortFunc(b.queue, func(x, y *waiter) int { return cmp.Compare(x.place, y.place) })
}

// occupy notes that a batch makes the keys of one of its waiters busy.
func (b *batcher) occupy(batch *batch, w *waiter) {
	for i := range w.charges {
		hash := hashOf(w.charges[i].Key)
		batch.keys = append(batch.keys, hash)
		b.addBusy(hash, 1)
	}
}

// vacate undoes occupy when a batch is over, or overdue.
func (b *batcher) vacate(batch *batch) {
	for _, hash := range batch.keys {
		b.addBusy(hash, -1)
	}
	batch.keys = batch.keys[:0]
	b.letGo()
}
