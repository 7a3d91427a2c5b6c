package runtime

import (
	"bytes"
	"context"
	"sync"
)

// maxAboard is how many calls a trip takes. A call is a few microseconds' work
// for Redis, which nobody else can use meanwhile.
const maxAboard = 128

// A trip is one execution of the script for several tickets.
type trip struct {
	wire    wire
	tickets []*ticket
	calls   []Call    // what is executed
	times   []int64   // for how many callers each of calls stands
	found   []outcome // what the script said of the first limit of each of calls
	origin  []place   // of each caller's call, in order: its place in calls
	weight  int64
	pass    pass // the newest of the tickets'
	flight  *flight
}

// A place says which of a trip's calls a caller's call is part of, and how
// many callers of that come before it.
type place struct {
	call  int
	index int64
}

// An outcome is what the script says about calls that are alike: how many were
// admitted, and the result of the last of them.
type outcome struct {
	admitted int64
	Result
}

var trips = sync.Pool{New: func() any { return new(trip) }}

func (t *trip) clear() {
	clear(t.tickets)
	clear(t.calls)
	t.tickets, t.calls, t.times, t.origin, t.weight = t.tickets[:0], t.calls[:0], t.times[:0], t.origin[:0], 0
	t.pass = 0
	t.flight = new(flight) // tickets given up keep the one before
}

// fits reports whether the ticket may come along: all of a trip is one kind of
// operation, and no more work than maxAboard calls of a small cost. The first
// ticket always fits.
func (t *trip) fits(ticket *ticket) bool {
	if len(t.tickets) == 0 {
		return true
	}
	return ticket.op == t.tickets[0].op && t.weight+ticket.weight <= maxAboard
}

// weight is how much work the charge is: one to a log grows with its cost.
func (c *Charge) weight() int64 {
	if c.Rule.Algorithm == SlidingLog {
		return 1 + c.Cost/16
	}
	return 1
}

// take adds a ticket's calls. A caller's only call becomes one with that of the
// caller before if both are to the same one limit at the same cost.
func (t *trip) take(ticket *ticket) {
	t.tickets = append(t.tickets, ticket)
	t.weight += ticket.weight
	t.pass = max(t.pass, ticket.pass)
	for _, call := range ticket.calls {
		if last := len(t.calls) - 1; ticket.op == "take" && len(ticket.calls) == 1 && last >= 0 && alike(&t.calls[last], &call) {
			t.origin = append(t.origin, place{last, t.times[last]})
			t.times[last]++
			continue
		}
		t.origin = append(t.origin, place{len(t.calls), 0})
		t.calls = append(t.calls, call)
		t.times = append(t.times, 1)
	}
}

// alike reports whether two calls can be one charge to Redis.
func alike(a, b *Call) bool {
	if len(a.Charges) != 1 || len(b.Charges) != 1 {
		return false
	}
	x, y := &a.Charges[0], &b.Charges[0]
	return x.Rule == y.Rule && x.Cost == y.Cost && x.Max == y.Max && !x.Rule.queues() && bytes.Equal(x.Key, y.Key)
}

// make executes the trip's calls and tells everybody aboard what became of
// theirs. It returns what they are told if that is the same for all.
func (t *trip) make(ctx context.Context, s *RedisStore) error {
	t.wire.load(t.tickets[0].op, t.calls, t.times, s.slot != nil)
	reply, err := s.run(ctx, &t.wire)
	t.found = t.found[:0]
	for i := 0; i < len(t.calls) && err == nil; i++ {
		call, from := &t.calls[i], reply
		if reply, err = call.read(reply); err == nil {
			t.found = append(t.found, outcome{from[0], call.Charges[0].Result})
		}
	}
	origin := t.origin
	for _, ticket := range t.tickets {
		for i := range ticket.calls {
			if err == nil {
				t.share(&ticket.calls[i], origin[i])
			}
		}
		origin = origin[len(ticket.calls):]
		ticket.err = err
		ticket.done <- struct{}{}
	}
	return err
}

// share fills in the results of a caller's call. If it was one of several
// alike, those that came first were admitted.
func (t *trip) share(call *Call, at place) {
	call.Err = t.calls[at.call].Err
	if t.times[at.call] == 1 || call.Err != nil {
		return // the results are in place: calls shares them with the ticket
	}
	found, c := &t.found[at.call], &call.Charges[0]
	c.Result = found.Result
	if ahead := found.admitted - 1 - at.index; ahead >= 0 {
		c.Allowed, c.RetryAfter = true, 0
		c.Remaining += ahead * c.Cost
	} else {
		c.Allowed, c.At = false, 0
	}
}
