// Package clock reads the process's own clock. The engine measures by it how
// long ago something was: when a call arrived, when a batch was sent, until when
// a refusal holds. It also tells what the clock of a server shows by now.
package clock

import (
	"sync/atomic"
	"time"
)

// origin lies long ago, so that instants are above 0 also in a bubble of
// testing/synctest, whose clock begins in the year 2000.
var origin = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Now returns the time since a fixed moment, by the monotonic clock: it goes on
// evenly when the wall clock is set. A reading takes a third as long as deciding
// a call in memory, so a call reads it once and passes the instant on.
func Now() time.Duration { return time.Since(origin) }

// At returns the instant of a time, such as the deadline of a context.
func At(t time.Time) time.Duration { return t.Sub(origin) }

func Time(at time.Duration) time.Time { return origin.Add(at) }

// stepBack is by how much a server's clock steps back at least to be noticed. Less is how
// clocks are kept right, and harms no limit that people set.
const stepBack = 100 * time.Millisecond

// stepForward is by how much more than its own time a process sees a server's clock go on at least,
// for that to be a step. Clocks that are kept right drift by less than a thousandth.
const stepForward = time.Second

// A Remote is what is known of a server's clock. Its times are in microseconds since 1970, and
// 0 is a time that is not known. It is safe for concurrent use. The zero Remote knows nothing.
type Remote struct {
	latest atomic.Int64
	ahead  atomic.Int64 // of the instants of this process, in microseconds
	most   atomic.Int64 // what ahead was at most when the last request was sent; 0: not known
	asked  atomic.Int64 // the instant at which that was, in microseconds
}

// Latest returns the latest time that the server has replied.
func (r *Remote) Latest() int64 { return r.latest.Load() }

// Learn learns the time at which the server has executed a request, which was sent at an instant,
// when known was the latest time. It returns by how much the clock has stepped: back, below 0, if
// the time is before that; forward, if more has passed on it since the last request than can have
// here. Another server that has taken the place of this one does the same. It returns 0 if that
// is little or was noticed by another request.
func (r *Remote) Learn(known, now int64, sent time.Duration) (step time.Duration) {
	if now == 0 {
		return 0
	}
	// The reply has taken a while, so the server is ahead of this by as much, and never behind it.
	ahead, latest := now-Now().Microseconds(), r.latest.Load()
	r.ahead.Store(ahead)
	asked, most := r.asked.Load(), r.most.Load()
	r.asked.Store(sent.Microseconds())
	r.most.Store(now - sent.Microseconds())
	if back := time.Duration(known-now) * time.Microsecond; known != 0 && back >= stepBack {
		if !r.latest.CompareAndSwap(latest, now) {
			return 0
		}
		return -back
	}
	if now <= latest || !r.latest.CompareAndSwap(latest, now) { // another request knows better
		return 0
	}
	drift := (sent.Microseconds() - asked) / 1000
	if step = time.Duration(ahead-most-drift) * time.Microsecond; most == 0 || drift < 0 || step < stepForward {
		return 0
	}
	return step
}

// At returns what the clock is expected to show at an instant, and false if the server has not
// replied yet.
func (r *Remote) At(now time.Duration) (shown int64, known bool) {
	ahead := r.ahead.Load()
	return ahead + now.Microseconds(), ahead != 0
}

// Await waits until done is closed, and reports false if that is not within a time.
func Await(done <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
