package batch

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
)

// next is when there is something to do about a waiter if its caller is not
// told.
func (w *Waiter) next(linger time.Duration) time.Duration {
	if w.rests != 0 {
		return w.rests
	}
	if !w.lingers {
		return min(w.due, w.arrived+linger)
	}
	return w.due
}

// expire does what is due by time. It tells the callers whose budgets are over;
// those that still wait will not be sent. It lets lingering callers watch their
// contexts, and has one more batch sent for them. Batches that have had no
// answer within the timeout are failures, and others no longer wait for them.
func (b *Batcher) expire() {
	now := clock.Now()
	failed, canceled, late := b.expired(now)
	for _, w := range late {
		b.end(w, w.err)
	}
	for _, own := range failed {
		b.Breaker.Failure(own.permission, own.sent)
	}
	for _, permission := range canceled {
		b.Breaker.Cancel(permission)
	}
	if len(canceled) > 0 {
		b.Breaker.Check(now)
	}
}

// evidence is what the breaker learns of a batch.
type evidence struct {
	permission breaker.Permission
	sent       time.Duration
}

// expired returns the batches that are overdue since, and the permissions of the
// waiters whose time was over before they were sent, and the returns whose time is over.
func (b *Batcher) expired(now time.Duration) (failed []evidence, canceled []breaker.Permission, returns []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 0
	var next time.Duration // when there is something to do again
	soonest := func(at time.Duration) {
		if next == 0 || at < next {
			next = at
		}
	}
	late := LateError(b.cfg.Timeout)
	over := func(w *Waiter) bool {
		if w.due > now {
			if w.next(b.linger) <= now {
				w.lingers = true
				if w.lazy {
					w.wake()
				}
			}
			soonest(w.next(b.linger))
			return false
		}
		if returned := w.returned != nil; w.finish(late, true) && returned {
			returns = append(returns, w)
		}
		return true
	}
	gone := func(w *Waiter) bool {
		permission := w.permission
		if !over(w) {
			return false
		}
		canceled = append(canceled, permission)
		return true
	}
	for _, own := range b.batches {
		for _, w := range own.waiters {
			over(w)
		}
		switch due := own.sent + b.cfg.Timeout; {
		case own.overdue:
		case due > now:
			soonest(due)
		default:
			own.overdue, b.failing = true, true
			b.recent.Store(0)
			if !own.yielded { // the server has not sent it elsewhere
				failed = append(failed, evidence{own.newestPermission(), own.sent})
			}
			if len(own.keys) > 0 {
				b.vacate(own)
			}
			b.yield(own)
		}
		if own.until > now {
			soonest(own.until)
		} else {
			own.end(late)
		}
	}
	b.wakeResting(now)
	b.hurry(now, soonest)
	b.held = slices.DeleteFunc(b.held, func(w *Waiter) bool {
		over := gone(w)
		if over {
			b.mark(w, -1)
		}
		return over
	})
	b.waiting = slices.DeleteFunc(b.waiting, gone)
	if !b.startBase() && b.lingering(now) {
		b.start()
	}
	if next > 0 {
		b.schedule(next, now)
	}
	return failed, canceled, returns
}

// yield lets another flush loop take the place of a batch's, unless too many
// have.
func (b *Batcher) yield(own *batch) {
	if own.yielded || b.yielded == maxOverdue {
		return
	}
	own.yielded = true
	b.yielded++
	b.inFlight--
	b.startBase()
}
