package runtime

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxAboard is how many calls a trip takes. A call is a few microseconds'
	// work for Redis, which nobody else can use meanwhile.
	maxAboard = 128
	// grain is the unit of work: a call is this many, and so is every script
	// after the first. A call that becomes one with another is next to none.
	grain = 16
	// maxTickets is how many callers a trip takes, however little work.
	maxTickets = 1024
)

// A trip is what goes to Redis together: one script, or on a cluster one for
// each slot.
type trip struct {
	// The terminal guards these while the trip is under way.
	tickets []*ticket
	stuck   bool // others do not wait for it to return

	left      time.Duration // when it was ready to leave
	overtaken []*ticket     // see terminal.overtake

	op    string
	pass  pass  // the newest of the tickets'
	room  int64 // for more work
	stops []*stop
	spare []*stop
	at    map[int]*stop // by slot
	rest  []*stop       // see refused
	last  index
}

var trips = sync.Pool{New: func() any { return &trip{at: make(map[int]*stop)} }}

// work is how much the charge is: one to a log grows with its cost.
func (c *Charge) work() int64 {
	if c.Rule.Algorithm == SlidingLog {
		return grain + c.Cost
	}
	return grain
}

// load makes stops of the tickets from the front and returns how many fit: all
// of a trip is one kind of operation, and no more work than maxAboard calls of
// a small cost. The first ticket always fits. Who has given up stays behind.
func (t *trip) load() int {
	t.unload()
	for i, ticket := range t.tickets {
		if ticket.state.Load() == open && !t.take(ticket) {
			return t.seal(i)
		}
	}
	return t.seal(len(t.tickets))
}

func (t *trip) seal(taken int) int {
	t.left = instant()
	for _, s := range t.stops {
		s.load(t.op, false)
	}
	return taken
}

func (t *trip) take(ticket *ticket) bool {
	room := t.room
	if len(t.stops) == 0 {
		t.op, room = ticket.op, ticket.work
	} else if ticket.op != t.op {
		return false
	}
	s := t.stopAt(ticket.slot)
	if s == nil {
		if len(t.stops) > 0 {
			if room -= grain; ticket.work > room {
				return false
			}
			t.room -= grain
		}
		s = t.stop(ticket.slot)
	}
	work, ok := s.add(ticket, &t.last, room)
	if ok {
		t.room -= work
		t.pass = max(t.pass, ticket.pass)
	}
	return ok
}

// stopAt returns the stop of a slot, or nil.
func (t *trip) stopAt(slot int) *stop {
	if len(t.stops) == 1 && t.stops[0].slot == slot {
		return t.stops[0]
	}
	return t.at[slot]
}

// stop adds a stop.
func (t *trip) stop(slot int) *stop {
	var s *stop
	if n := len(t.spare); n > 0 {
		s, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		s = new(stop)
	}
	s.slot = slot
	t.stops = append(t.stops, s)
	t.at[slot] = s
	return s
}

// refused returns the stops whose scripts may be sent again, and whether that
// is to be tried at once: the first whose script the server does not have is
// to bring the text along, and those with a key that is forbidden are halved.
func (t *trip) refused(all bool) (rest []*stop, now bool) {
	t.rest = t.rest[:0]
	text := false
	for _, s := range t.stops {
		s.text = false
		if forbidden(s.err) && len(s.aboard) > 1 {
			t.rest, now = append(t.rest, s, t.halve(s)), true
			continue
		}
		if s.refused = refused(s.err, all); !s.refused {
			continue
		}
		if !text && unknown(s.err) {
			s.text, text, now = true, true, true
		}
		t.rest = append(t.rest, s)
	}
	return t.rest, now
}

// halve parts a stop in two that may be sent, and returns the second. Redis
// executes no script for which one of the keys is forbidden to its user, and
// that is to be the failure of those alone who named it.
func (t *trip) halve(s *stop) *stop {
	aboard := slices.Clone(s.aboard)
	half := len(aboard) / 2
	second := t.stop(s.slot)
	s.clear()
	s.fill(aboard[:half], &t.last, t.op)
	second.fill(aboard[half:], &t.last, t.op)
	return second
}

// err returns why nobody aboard got an answer, or nil.
func (t *trip) err() error {
	for _, s := range t.stops {
		if s.err == nil {
			return nil
		}
	}
	return t.stops[0].err
}

// unload lets go of everybody aboard.
func (t *trip) unload() {
	for _, s := range t.stops {
		s.clear()
	}
	t.spare = append(t.spare, t.stops...)
	clear(t.stops)
	clear(t.rest)
	clear(t.at)
	t.last.clear()
	t.stops, t.room, t.pass = t.stops[:0], maxAboard*grain, 0
}

// free gives the trip back for another to be made.
func (t *trip) free() {
	t.unload()
	trips.Put(t)
}
