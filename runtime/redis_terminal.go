package runtime

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxFlying is how many trips of a store are under way at a time. With two
	// Redis is at work on one while the other's reply and the next one's
	// command are on the wire.
	maxFlying = 2
	// maxStuck is how many trips that have taken too long may be under way
	// beside those.
	maxStuck = 8
	// maxWaiting is how many calls may wait for a trip.
	maxWaiting = 16_384
)

// A terminal is where concurrent calls of a process wait to share trips to
// Redis. A call that finds a trip free leaves at once; while all are under way
// calls gather, and when one returns they leave together. Nobody waits for
// others to come.
type terminal struct {
	store   *RedisStore
	breaker *breaker

	mu      sync.Mutex
	waiting []*ticket
	flying  int // trips under way, but for the stuck ones
	stuck   int // trips that somebody has stopped waiting for
}

// A flight is one trip under way. The terminal guards it.
type flight struct{ stuck, over bool }

// A ticket is one caller's share of a trip. It owns copies of the caller's
// charges, since the caller may give up while they are under way.
type ticket struct {
	op      string
	calls   []Call
	charges []Charge // of all calls
	keys    []byte   // of all charges
	weight  int64    // how much work they are, see trip.fits
	pass    pass     // the breaker's
	err     error
	done    chan struct{} // receives one value when the trip is over
	timer   *time.Timer
	givenUp bool    // guarded by the terminal
	flight  *flight // the same; nil while it waits
}

var tickets = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &ticket{done: make(chan struct{}, 1), timer: timer}
}}

var errCrowded = errors.New("too many calls wait for redis")

// travel has calls executed by Redis and fills in their results. It returns
// when that is done, when the store's timeout is over, or when ctx ends. A
// call that has not left by then is never executed.
func (t *terminal) travel(ctx context.Context, op string, calls []Call) error {
	pass, ok := t.breaker.admit()
	if !ok {
		return errBroken
	}
	ticket := tickets.Get().(*ticket)
	ticket.write(op, calls)
	ticket.pass = pass
	if err := t.join(ticket); err != nil {
		t.breaker.dropped(pass)
		return err
	}
	ticket.timer.Reset(t.store.timeout)
	select {
	case <-ticket.done:
		err := ticket.err
		if err == nil {
			ticket.hand(calls)
		}
		// Before anybody else has the ticket, whose time it would stop.
		ticket.timer.Stop()
		tickets.Put(ticket)
		return err
	case <-ticket.timer.C:
		if t.giveUp(ticket, true) {
			t.breaker.failed(pass)
		} else {
			t.breaker.dropped(pass)
		}
		return t.store.late()
	case <-ctx.Done():
		ticket.timer.Stop()
		t.giveUp(ticket, false)
		t.breaker.dropped(pass)
		return ctx.Err()
	}
}

// join puts a ticket in the queue, and starts a trip if one is free.
func (t *terminal) join(ticket *ticket) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= maxWaiting {
		return errCrowded
	}
	t.waiting = append(t.waiting, ticket)
	t.start()
	return nil
}

// start starts a trip if somebody waits and one is free.
func (t *terminal) start() {
	if len(t.waiting) > 0 && t.flying < maxFlying {
		t.flying++
		go t.fly()
	}
}

// fly makes trips until nobody waits.
func (t *terminal) fly() {
	trip := trips.Get().(*trip)
	defer trips.Put(trip)
	for t.board(trip) {
		ctx, cancel := t.store.withTimeout(context.Background())
		err := trip.make(ctx, t.store)
		cancel()
		if !t.land(trip.flight) {
			return // what came so late says nothing about Redis as it is now
		}
		t.breaker.learn(trip.pass, err)
	}
}

// land ends a flight. It returns false if the trip was stuck, so that another
// has taken its place.
func (t *terminal) land(f *flight) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.over = true
	if f.stuck {
		t.stuck--
	}
	return !f.stuck
}

// board fills a trip from the front of the queue. It returns false, and gives
// the trip back, if nobody waits.
func (t *terminal) board(trip *trip) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	trip.clear()
	taken := 0
	for _, ticket := range t.waiting {
		if !trip.fits(ticket) {
			break
		}
		taken++
		if !ticket.givenUp {
			ticket.flight = trip.flight
			trip.take(ticket)
		}
	}
	n := copy(t.waiting, t.waiting[taken:])
	clear(t.waiting[n:])
	t.waiting = t.waiting[:n]
	if len(trip.tickets) == 0 {
		t.flying--
		return false
	}
	return true
}

// giveUp keeps a ticket from boarding, if it has not, and reports whether it
// has. If so and its time is over, its trip is stuck, and others need not wait
// for that to return. The ticket is not used again: the trip may still write to
// it.
func (t *terminal) giveUp(ticket *ticket, late bool) (left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ticket.givenUp = true
	f := ticket.flight
	if !late || f == nil || f.over || f.stuck || t.stuck == maxStuck {
		return f != nil
	}
	f.stuck = true
	t.stuck++
	t.flying--
	t.start()
	return true
}

func (t *ticket) write(op string, calls []Call) {
	t.op, t.err, t.calls, t.charges, t.keys = op, nil, t.calls[:0], t.charges[:0], t.keys[:0]
	t.flight, t.weight = nil, 0
	for i := range calls {
		t.charges = append(t.charges, calls[i].Charges...)
		for j := range calls[i].Charges {
			t.keys = append(t.keys, calls[i].Charges[j].Key...)
			t.weight += calls[i].Charges[j].weight()
		}
	}
	charges, keys := t.charges, t.keys
	for i := range calls {
		n := len(calls[i].Charges)
		t.calls = append(t.calls, Call{Charges: charges[:n:n]})
		for j := range n {
			size := len(charges[j].Key)
			charges[j].Key, keys = keys[:size:size], keys[size:]
		}
		charges = charges[n:]
	}
}

// hand gives the caller what was found.
func (t *ticket) hand(calls []Call) {
	for i := range calls {
		calls[i].Err = t.calls[i].Err
		for j := range calls[i].Charges {
			calls[i].Charges[j].Result = t.calls[i].Charges[j].Result
		}
	}
}
