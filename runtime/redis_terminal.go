package runtime

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxFlying is how many trips of a terminal are under way at a time. With
	// two Redis is at work on one while the other's reply and the next one's
	// command are on the wire.
	maxFlying = 2
	// maxStuck is how many trips that have taken too long may be under way
	// beside those: those that look whether Redis is back, for as long as
	// go-redis by default waits for an answer.
	maxStuck = 40
	// crowd is how many callers on a trip are likely to be back in a moment.
	crowd = 8
	// maxWaiting is how many calls may wait for a trip.
	maxWaiting = 16_384
)

// A terminal is where concurrent calls of a process wait to share trips to one
// server. A call that finds a trip free leaves at once; while all are under way
// calls gather, and when one returns they leave together. Nobody waits for
// others to come.
type terminal struct {
	store    *RedisStore
	client   redis.UniversalClient // of the server
	punctual bool                  // the client gives up when a context's deadline is over
	node     *redis.Client         // of the server among others; nil: it is the only one
	breaker  *breaker

	mu      sync.Mutex
	waiting []*ticket    // in the order of their arrival
	trips   []*trip      // under way
	flying  int          // pilots, but for those of stuck trips
	stuck   int          // trips that nobody waits for to return
	crowded atomic.Int32 // above 0 if one of the last trips was
	timer   *time.Timer
	next    time.Duration // when timer will call overdue; 0: never
}

var errCrowded = errors.New("too many calls wait for redis")

// open makes the zero terminal one for trips by a client.
func (t *terminal) open(s *RedisStore, client redis.UniversalClient) {
	t.store, t.client, t.breaker = s, client, newBreaker(s.timeout, s.turned)
	if c, ok := client.(*redis.Client); ok {
		t.punctual = c.Options().ContextTimeoutEnabled
	}
}

// travel has calls executed by Redis, whose keys lie in one slot, and fills in
// their results. The caller came at an instant. It returns when that is done,
// when the store's timeout is over since, or when ctx ends. A call that has not
// left by then is never executed.
func (t *terminal) travel(ctx context.Context, op string, slot int, calls []Call, came time.Duration) error {
	ticket, err := t.enter(ctx, op, slot, calls, came, true)
	if err != nil {
		return err
	}
	return ticket.wait(ctx, calls, t.breaker)
}

// enter has calls executed. The caller must wait with the ticket. Perhaps it
// makes the trip by itself, if it may.
func (t *terminal) enter(ctx context.Context, op string, slot int, calls []Call, came time.Duration, alone bool) (*ticket, error) {
	pass, ok := t.breaker.admit()
	if !ok {
		return nil, errBroken
	}
	ticket := newTicket(op, slot, calls, came)
	ticket.pass, ticket.due = pass, came+t.store.timeout
	may, blind := t.patience(ctx, came)
	ticket.blind = blind
	trip, err := t.join(ticket, alone && may && !pass.probe())
	if err != nil {
		t.breaker.dropped(pass)
		return nil, err
	}
	if trip != nil {
		t.ride(trip)
	}
	return ticket, nil
}

// join puts a ticket in the queue, and sees to it that a trip starts if one is
// free. If its caller may travel alone and can leave now, it is given a trip to
// make.
func (t *terminal) join(ticket *ticket, alone bool) (*trip, error) {
	t.mu.Lock()
	if len(t.waiting) >= maxWaiting {
		t.mu.Unlock()
		return nil, errCrowded
	}
	if alone && len(t.waiting) == 0 && t.flying < maxFlying && t.crowded.Load() == 0 {
		ticket.blind = false
		t.watch(ticket.next(), ticket.came)
		t.flying++
		trip := trips.Get().(*trip)
		t.depart(trip, ticket)
		t.mu.Unlock()
		return trip, nil
	}
	t.watch(ticket.next(), ticket.came)
	t.waiting = append(t.waiting, ticket)
	t.start()
	t.mu.Unlock()
	return nil, nil
}

// start starts a pilot if somebody waits and a trip is free.
func (t *terminal) start() {
	if len(t.waiting) > 0 && t.flying < maxFlying {
		t.flying++
		go t.pilot(trips.Get().(*trip))
	}
}

// depart notes that a trip is under way with tickets.
func (t *terminal) depart(trip *trip, tickets ...*ticket) {
	trip.tickets = append(trip.tickets[:0], tickets...)
	t.trips = append(t.trips, trip)
}

// board fills a trip from the front of the queue. It returns false if nobody
// waits, and then the pilot goes.
func (t *terminal) board(trip *trip) bool {
	if t.crowded.Load() > 0 {
		// Whoever can run now runs first: those who were aboard before, say. If
		// they come again they come along, and do not need a trip each.
		runtime.Gosched()
	}
	for {
		t.mu.Lock()
		n := min(len(t.waiting), maxTickets)
		if n == 0 {
			t.flying--
			t.mu.Unlock()
			return false
		}
		t.depart(trip, t.waiting[:n]...)
		t.waiting = slices.Delete(t.waiting, 0, n)
		t.mu.Unlock()

		n -= t.overtake(trip)
		if taken := trip.load(); taken < n {
			t.mu.Lock()
			t.waiting = slices.Insert(t.waiting, 0, trip.tickets[taken:]...)
			trip.tickets = slices.Delete(trip.tickets, taken, n)
			t.start()
			t.mu.Unlock()
		}
		if len(trip.stops) > 0 {
			return true
		}
		if !t.land(trip) { // all have given up
			return false
		}
	}
}

// land notes that a trip is over. It returns false if another pilot has taken
// this one's place meanwhile.
func (t *terminal) land(trip *trip) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.trips, trip)
	t.trips = slices.Delete(t.trips, i, i+1)
	if n := t.crowded.Load(); len(trip.tickets) >= crowd {
		t.crowded.Store(2 * maxFlying)
	} else if n > 0 {
		t.crowded.Store(n - 1)
	}
	clear(trip.tickets)
	trip.tickets = trip.tickets[:0]
	if !trip.stuck {
		return true
	}
	trip.stuck = false
	t.stuck--
	return false
}

// yield lets another pilot take the place of a trip's, unless too many have.
func (t *terminal) yield(trip *trip) {
	if trip.stuck || t.stuck == maxStuck {
		return
	}
	trip.stuck = true
	t.stuck++
	t.flying--
	t.start()
}
