package runtime

import (
	"context"
	"time"
)

// maxBlind is the longest timeout with which a caller makes a trip by itself,
// and so does not see that its context has ended before the trip has.
const maxBlind = 100 * time.Millisecond

// patience returns whether a caller that came at an instant may make a trip by
// itself, which is quicker than to wait for another goroutine: the client lets
// go when the timeout is over, and its own time is not over before. If it may
// not, or cannot, it can yet wait blind for a moment, see glance.
func (t *terminal) patience(ctx context.Context, came time.Duration) (alone, blind bool) {
	if ctx.Done() == nil {
		return t.punctual, false
	}
	left := Never
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(origin) - came
	}
	return t.punctual && t.store.timeout <= maxBlind && left >= t.store.timeout, left >= glance
}

// probeTime is how long a trip may take that looks whether Redis is back,
// although its caller is told before. Perhaps a connection has to be made first,
// and a client that minds contexts would never come to have one if all trips
// ended sooner than it is made.
const probeTime = 500 * time.Millisecond

// timeFor returns a context for a trip.
func (t *terminal) timeFor(trip *trip) (context.Context, context.CancelFunc) {
	if !trip.pass.probe() {
		return t.store.withTimeout(context.Background())
	}
	return context.WithTimeoutCause(context.Background(), max(t.store.timeout, probeTime), t.store.late())
}

// pilot makes trips until nobody waits, or until one is stuck.
func (t *terminal) pilot(trip *trip) {
	for t.board(trip) {
		ctx, cancel := t.timeFor(trip)
		t.store.send(ctx, t.client, trip.stops)
		kept := t.finish(ctx, trip)
		cancel()
		if !kept {
			break
		}
	}
	trip.free()
}

// ride makes the trip of a caller that travels alone. If it has to be sent
// again a pilot does that.
func (t *terminal) ride(trip *trip) {
	if trip.load(); len(trip.stops) == 0 { // its time was over before it left
		t.disembark(trip, t.land(trip))
		return
	}
	ctx, cancel := t.store.withTimeout(context.Background())
	t.store.send(ctx, t.client, trip.stops)
	if refused(trip.stops[0].err, t.node == nil) {
		go func() {
			kept := t.finish(ctx, trip)
			cancel()
			if kept {
				t.pilot(trip)
			} else {
				trip.free()
			}
		}()
		return
	}
	kept := t.finish(ctx, trip)
	cancel()
	t.disembark(trip, kept)
}

// disembark has a caller that traveled alone leave its trip, to a pilot if the
// trip is kept and somebody waits.
func (t *terminal) disembark(trip *trip, kept bool) {
	if !kept || !t.relieve(trip) {
		trip.free()
	}
}

// relieve starts a pilot for a trip if somebody waits, and else gives it back.
func (t *terminal) relieve(trip *trip) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.flying--
		return false
	}
	go t.pilot(trip)
	return true
}

// finish sees a trip that was sent to its end, and tells everybody aboard what
// became of their calls. It returns false if another pilot has taken this one's
// place.
func (t *terminal) finish(ctx context.Context, trip *trip) bool {
	t.retry(ctx, trip)
	pass, err := trip.pass, trip.err()
	kept := t.land(trip)
	if err != nil {
		t.forget(trip)
	}
	for _, s := range trip.stops {
		t.tell(trip, s)
	}
	if kept { // what comes so late says nothing about Redis as it is now
		t.breaker.learn(pass, err)
	}
	return kept
}

// retry sends again what certainly no server has executed, until ctx ends.
func (t *terminal) retry(ctx context.Context, trip *trip) {
	client, all, pause := t.client, t.node == nil, time.Millisecond
	for {
		rest, now := trip.refused(all)
		switch {
		case len(rest) == 0:
			return
		case now:
		case !all:
			client, all = t.store.client, true // which finds the right server
			t.detour(trip, rest)
		default:
			t.store.topology.doubt(ClassOf(rest[0].err))
			if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
				return // the error says more than that the time is over
			}
			select {
			case <-time.After(pause):
				pause *= 2
			case <-ctx.Done():
				return
			}
		}
		t.store.send(ctx, client, rest)
	}
}

// detour prepares for sending the rest of a trip by way of the client of all
// servers. That may take a while, so the others aboard are told, and another
// pilot goes on.
func (t *terminal) detour(trip *trip, rest []*stop) {
	t.forget(trip)
	t.mu.Lock()
	clear(trip.tickets)
	trip.tickets = trip.tickets[:0]
	for _, s := range rest {
		trip.tickets = append(trip.tickets, s.aboard...)
	}
	t.yield(trip)
	t.mu.Unlock()
	for _, s := range trip.stops {
		if s.refused {
			s.load(trip.op, true)
			continue
		}
		t.tell(trip, s)
		s.clear()
	}
}
