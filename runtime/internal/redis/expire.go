package redis

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// nextCheck is when there is something to do about a waiter if its caller is not
// told.
func (w *waiter) nextCheck(linger time.Duration) time.Duration {
	if w.idleUntil != 0 {
		return w.idleUntil
	}
	if !w.lingers {
		return min(w.due, w.arrived+linger)
	}
	return w.due
}

// An expiry is what expire finds at an instant.
type expiry struct {
	now    time.Duration
	alarm  time.Duration // when there is something to do again; 0: never
	late   error         // of a caller whose time is over
	failed []evidence    // of batches that are overdue since
	queued bool          // a waiter's time was over before it was sent

	returns []*waiter // whose time is over
}

// evidence is what the breaker learns of a batch.
type evidence struct {
	permission permission
	sent       time.Duration
}

// wake has expire look again at an instant.
func (e *expiry) wake(instant time.Duration) {
	if e.alarm == 0 || instant < e.alarm {
		e.alarm = instant
	}
}

// expire does what is due by time. It tells the callers whose budgets are over;
// those that still wait will not be sent. It lets lingering callers watch their
// contexts, and has one more batch sent for them. Batches that have had no
// answer within the timeout are failures, and others no longer wait for them.
func (b *batcher) expire() {
	x := expiry{now: clock.Now(), late: LateError(b.cfg.Timeout)}
	b.mu.Lock()
	b.alarm = 0
	for _, batch := range b.batches {
		b.expireBatch(&x, batch)
	}
	b.wakeIdle(x.now)
	b.hurry(&x)
	b.expireQueue(&x)
	if len(b.heavy) > 0 {
		b.admitHeavy()
	}
	b.startLingered(x.now)
	if x.alarm > 0 {
		b.schedule(x.alarm, x.now)
	}
	b.mu.Unlock()
	for _, w := range x.returns {
		b.end(w, w.err)
	}
	for _, e := range x.failed {
		b.breaker.Failure(e.permission, e.sent)
	}
	if x.queued {
		b.breaker.Check(x.now)
	}
}

// expireBatch does what is due about a batch under way.
func (b *batcher) expireBatch(x *expiry, batch *batch) {
	for _, w := range batch.waiters {
		b.expireWaiter(x, w)
	}
	due := batch.sent + b.cfg.Timeout
	if !batch.overdue && due > x.now {
		x.wake(due)
	} else if !batch.overdue {
		batch.overdue, b.failing = true, true
		b.lastTrip.Store(0)
		if !batch.yielded { // the server has not sent it elsewhere
			x.failed = append(x.failed, evidence{batch.permission, batch.sent})
		}
		if len(batch.keys) > 0 {
			b.vacate(batch)
		}
		b.yield(batch)
	}
	if batch.until > x.now {
		x.wake(batch.until)
	} else {
		batch.end(x.late)
	}
}

// expireQueue drops the waiters that are not sent yet and whose time is over.
func (b *batcher) expireQueue(x *expiry) {
	drop := func(w *waiter) bool {
		if !b.expireWaiter(x, w) {
			return false
		}
		b.breaker.Cancel(w.permission)
		x.queued = true
		return true
	}
	b.queue = slices.DeleteFunc(b.queue, drop)
	b.held = slices.DeleteFunc(b.held, func(w *waiter) bool {
		late := drop(w)
		if late {
			b.mark(w, -1)
		}
		return late
	})
	b.heavy = slices.DeleteFunc(b.heavy, func(w *waiter) bool {
		late := drop(w)
		if late {
			b.markHeavy(w, false)
		}
		return late
	})
}

// expireWaiter tells the caller of a waiter whose time is over, and reports whether it is. A
// caller that has lingered watches its context from then on.
func (b *batcher) expireWaiter(x *expiry, w *waiter) bool {
	if w.due > x.now {
		if w.nextCheck(b.linger) <= x.now {
			w.lingers = true
			if w.lazy {
				w.wake()
			}
		}
		x.wake(w.nextCheck(b.linger))
		return false
	}
	returned := w.returned != nil
	if w.finishLate(x.late) && returned {
		x.returns = append(x.returns, w)
	}
	return true
}

// yield lets another flush loop take the place of a batch's, unless too many
// have.
func (b *batcher) yield(batch *batch) {
	if batch.yielded || b.yielded == maxOverdue {
		return
	}
	batch.yielded = true
	b.yielded++
	b.inFlight--
	b.startBase()
}
