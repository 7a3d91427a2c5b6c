package runtime

import "time"

// watch sees to it that overdue is called in a while. There is one timer for
// all tickets, which nobody touches as long as it runs.
func (t *terminal) watch(after time.Duration) {
	if t.watching {
		return
	}
	t.watching = true
	if t.timer == nil {
		t.timer = time.AfterFunc(after, t.overdue)
	} else {
		t.timer.Reset(after)
	}
}

// overdue tells the callers whose time is over. Those who wait will not leave.
// A trip with one of them aboard is stuck: others need not wait for it.
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
	t.watching = false
	var next time.Duration // when the next ticket is over
	late := t.store.late()
	over := func(ticket *ticket, passes *[]pass) bool {
		if ticket.due > now {
			if next == 0 || ticket.due < next {
				next = ticket.due
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
	n := 0
	for n < len(t.waiting) && over(t.waiting[n], &waiting) {
		n++
	}
	t.waiting = t.waiting[:copy(t.waiting, t.waiting[n:])]
	if next > 0 {
		t.watch(next - now)
	}
	return aboard, waiting
}
