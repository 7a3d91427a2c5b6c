package redis

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// heavyFrom is the work above which a waiter is heavy: that of four charges. Redis does not
// do as much of heavy waiters at a time as would keep others waiting.
const heavyFrom = 4 * terms.Work

// heavyMost returns how much work of heavy waiters may be queued and under way: as much as two
// batches are, which keeps a Redis that is near busy, and of a distant one what it does in a tenth
// of the timeout. One whose answers take long since it is busy is not distant.
func (b *batcher) heavyMost() int64 {
	most := b.cfg.Timeout.Microseconds() * 4 / 10
	if b.shortest == 0 || b.shortest > b.linger {
		return most
	}
	return min(most, baseInFlight*terms.MaxWork)
}

// heavyWork returns how much there is. What is overdue keeps nobody waiting.
func (b *batcher) heavyWork() (work int64) {
	add := func(waiters []*waiter) {
		for _, w := range waiters {
			if w.work > heavyFrom {
				work += w.work
			}
		}
	}
	add(b.queue)
	add(b.held)
	for _, batch := range b.batches {
		if !batch.overdue {
			add(batch.waiters)
		}
	}
	return work
}

// postpone keeps a heavy waiter apart from the queue, unless there is room for it now. What is asked
// about other keys meanwhile overtakes it, and so is what others take of its own, but not if it
// gives back: its keys are busy then.
func (b *batcher) postpone(w *waiter) bool {
	work := b.heavyWork()
	if len(b.heavy) == 0 && (work == 0 || work+w.work <= b.heavyMost()) {
		return false
	}
	w.idleUntil = 0
	b.markHeavy(w, true)
	b.schedule(w.nextCheck(b.linger), w.arrived)
	b.heavy = append(b.heavy, w)
	return true
}

// admitHeavy queues heavy waiters in the order of their arrival, as many as there is room for. It leaves
// those behind whose time would be over before the answer comes, as the last one took: else, if there
// are more than Redis does in the timeout, it would be busy with those alone.
func (b *batcher) admitHeavy() {
	work, most := b.heavyWork(), b.heavyMost()
	answered := clock.Now() + time.Duration(b.lastTrip.Load())
	stay := b.heavy[:0]
	for i, w := range b.heavy {
		if work > 0 && work+w.work > most {
			stay = append(stay, b.heavy[i:]...)
			break
		}
		if w.due < answered {
			stay = append(stay, w)
			continue
		}
		b.markHeavy(w, false)
		if w.state.Load() == pending { // its caller has not given up
			work += w.work
			b.insert(w)
		}
	}
	clear(b.heavy[len(stay):])
	b.heavy = stay
	b.letGo() // what waits for their keys
	b.startBase()
}

// insert queues a waiter ahead of those that have come later: some may wait for its keys.
func (b *batcher) insert(w *waiter) {
	if len(b.busy) > 0 && b.isBusy(w) {
		b.hold(w)
		return
	}
	i := slices.IndexFunc(b.queue, func(o *waiter) bool { return o.place > w.place })
	if i < 0 {
		i = len(b.queue)
	}
	b.queue = slices.Insert(b.queue, i, w)
}

// markHeavy has a heavy waiter make its keys busy for those that come later, or undoes that.
func (b *batcher) markHeavy(w *waiter, busy bool) {
	if !w.occupies() {
		return
	}
	for i := range w.charges {
		hash := hashOf(w.charges[i].Key)
		if busy {
			b.addBusy(hash, 1)
			b.heavyPlaces[hash] = append(b.heavyPlaces[hash], w.place)
			continue
		}
		b.addBusy(hash, -1)
		at := slices.Index(b.heavyPlaces[hash], w.place)
		b.heavyPlaces[hash] = slices.Delete(b.heavyPlaces[hash], at, at+1)
		if len(b.heavyPlaces[hash]) == 0 {
			delete(b.heavyPlaces, hash)
		}
	}
}

// heavyLater returns how many heavy waiters make a key busy that have come later than a place.
func (b *batcher) heavyLater(hash, place uint64) (n int) {
	for _, p := range b.heavyPlaces[hash] {
		if p > place {
			n++
		}
	}
	return n
}
