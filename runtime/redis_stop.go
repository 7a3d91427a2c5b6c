package runtime

import (
	"bytes"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// A stop is the part of a trip that one script decides: all of it, or on a
// cluster what lies in one slot.
type stop struct {
	wire   wire
	slot   int
	aboard []*ticket
	calls  []Call    // what is executed
	times  []int64   // for how many callers each of calls stands
	found  []outcome // what the script said of the first limit of each of calls
	origin []place   // of each caller's call, in order: its place in calls

	cmd     redis.IntSliceCmd // that is being sent: one less to allocate
	text    bool              // the script is sent as text
	refused bool              // the script may be sent again
	err     error             // why all of it came to nothing
}

// A place says which of a stop's calls a caller's call is part of, and how
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

func (s *stop) clear() {
	clear(s.aboard)
	clear(s.calls)
	s.aboard, s.calls, s.times, s.origin = s.aboard[:0], s.calls[:0], s.times[:0], s.origin[:0]
	s.cmd, s.text, s.refused, s.err = redis.IntSliceCmd{}, false, false, nil
}

// add adds a ticket and returns how much work it is, or false if that is more
// than there is room for. A call becomes one with the last one on its key if
// both are to the same one limit at the same cost: so calls on a key stay in
// the order of their arrival.
func (s *stop) add(ticket *ticket, last *index, room int64) (work int64, ok bool) {
	if len(ticket.charges) == 1 {
		return s.addOne(ticket, last, room)
	}
	if ticket.work > room {
		return 0, false
	}
	for i := range ticket.calls {
		charges := ticket.calls[i].Charges
		for j := range charges {
			last.set(last.entry(&charges[j]), &charges[j], len(s.calls))
		}
		s.append(ticket.calls[i])
	}
	s.aboard = append(s.aboard, ticket)
	return ticket.work, true
}

// addOne adds a ticket of one charge.
func (s *stop) addOne(ticket *ticket, last *index, room int64) (work int64, ok bool) {
	charge, work := &ticket.charges[0], ticket.work
	entry := last.entry(charge)
	merged := ticket.op == "take" && last.holds(entry) && alike(&s.calls[entry.call], charge)
	if merged {
		work -= grain
	}
	switch {
	case work > room:
		return 0, false
	case merged:
		s.origin = append(s.origin, place{int(entry.call), s.times[entry.call]})
		s.times[entry.call]++
	default:
		last.set(entry, charge, len(s.calls))
		s.append(ticket.calls[0])
	}
	s.aboard = append(s.aboard, ticket)
	return work, true
}

func (s *stop) append(call Call) {
	s.origin = append(s.origin, place{len(s.calls), 0})
	s.calls = append(s.calls, call)
	s.times = append(s.times, 1)
}

// fill adds tickets that have been aboard of another stop, and makes the stop
// one that may be sent by any client.
func (s *stop) fill(tickets []*ticket, last *index, op string) {
	last.clear()
	for _, ticket := range tickets {
		s.add(ticket, last, math.MaxInt64)
	}
	s.load(op, true)
	s.refused = true
}

// alike reports whether a call can be one charge to Redis with a charge on one
// of its keys.
func alike(call *Call, c *Charge) bool {
	if len(call.Charges) != 1 {
		return false
	}
	x := &call.Charges[0]
	return x.Rule == c.Rule && x.Cost == c.Cost && x.Max == c.Max && !x.Rule.queues() && bytes.Equal(x.Key, c.Key)
}

// load builds the arguments of the script.
func (s *stop) load(op string, routed bool) { s.wire.load(op, s.calls, s.times, routed) }

// settle takes down what became of the script.
func (s *stop) settle(numbers []int64, err error) {
	s.found, s.err = s.found[:0], err
	var reply reply
	if s.err == nil {
		reply, s.err = newReply(numbers)
	}
	for i := 0; i < len(s.calls) && s.err == nil; i++ {
		var admitted int64
		if admitted, s.err = s.calls[i].read(&reply, s.times[i]); s.err == nil {
			s.found = append(s.found, outcome{admitted, s.calls[i].Charges[0].Result})
		}
	}
}

// learn has denials remember what the script, asked at a time, has denied, and
// reports whether that was anything.
func (s *stop) learn(d *denials, asked time.Duration) (denied bool) {
	for i := range s.calls {
		call := &s.calls[i]
		if call.Err != nil {
			continue
		}
		if s.found[i].admitted < s.times[i] && s.times[i] > 1 {
			call.Charges[0].Allowed = false // the last of them was not, which is told apart later
		}
		denied = d.remember(call, asked) || denied
	}
	return denied
}

// tell tells everybody aboard what became of their calls.
func (s *stop) tell() {
	origin := s.origin
	for _, ticket := range s.aboard {
		if s.err == nil {
			for i := range ticket.calls {
				s.share(&ticket.calls[i], origin[i])
			}
		}
		origin = origin[len(ticket.calls):]
		ticket.tell(s.err, false)
	}
}

// share fills in the results of a caller's call. If it was one of several
// alike, those that came first were admitted.
func (s *stop) share(call *Call, at place) {
	call.Err = s.calls[at.call].Err
	if s.times[at.call] == 1 || call.Err != nil {
		return // the results are in place: calls shares them with the ticket
	}
	found, c := &s.found[at.call], &call.Charges[0]
	c.Result = found.Result
	if ahead := found.admitted - 1 - at.index; ahead >= 0 {
		c.Allowed, c.RetryAfter = true, 0
		c.Remaining += ahead * c.Cost
	} else {
		c.Allowed, c.At = false, 0
	}
}
