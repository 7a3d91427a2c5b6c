package runtime

import (
	"slices"
	"time"
)

// glance is after how long a caller that waits for nothing but its answer looks
// at its context too. To wait for both costs twice as much, and a trip is seldom
// this long.
const glance = 5 * time.Millisecond

// next is when there is something to do about a ticket if its caller is not told.
func (t *ticket) next() time.Duration {
	if t.blind && !t.stirred {
		return min(t.due, t.came+glance)
	}
	return t.due
}

// watch sees to it that overdue is called at an instant, or before. There is one
// timer for all tickets, which hardly anybody touches as long as it runs.
func (t *terminal) watch(next, now time.Duration) {
	if t.next != 0 && t.next <= next {
		return
	}
	t.next = next
	if t.timer == nil {
		t.timer = time.AfterFunc(next-now, t.overdue)
	} else {
		t.timer.Reset(next - now)
	}
}

// overdue tells the callers whose time is over. Those who wait will not leave.
// A trip with one of them aboard is stuck: others need not wait for it. Callers
// that have waited for a while begin to look at their contexts.
func (t *terminal) overdue() {
	now := instant()
	failed, dropped := t.expire(now)
	for _, pass := range failed {
		t.breaker.failed(pass)
	}
	for _, pass := range dropped {
		t.breaker.dropped(pass)
	}
}

// expire returns the passes of the tickets that are over, those aboard of a
// trip and those that waited for one.
func (t *terminal) expire(now time.Duration) (aboard, waiting []pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = 0
	var next time.Duration // when there is something to do again
	late := t.store.late()
	over := func(ticket *ticket, passes *[]pass) bool {
		if ticket.due > now {
			if ticket.next() <= now {
				ticket.stirred = true
				ticket.wake()
			}
			if n := ticket.next(); next == 0 || n < next {
				next = n
			}
			return false
		}
		if ticket.tell(late, true) {
			*passes = append(*passes, ticket.pass)
		}
		return true
	}
	for _, trip := range t.trips {
		stuck := false
		for _, ticket := range trip.tickets {
			stuck = over(ticket, &aboard) || stuck
		}
		if stuck {
			t.yield(trip)
		}
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(ticket *ticket) bool { return over(ticket, &waiting) })
	if next > 0 {
		t.watch(next, now)
	}
	return aboard, waiting
}
