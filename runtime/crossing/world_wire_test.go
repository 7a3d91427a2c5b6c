package crossing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/wrapper"
)

// A wire is the world of a Redis that is far away, in a bubble of testing/synctest. The scripts
// run on a real server, by the clock of the bubble, and each trip takes as long as its program
// says: so what a limiter with a RedisStore does is known to the microsecond.
type wire struct {
	bubble
	server  *farServer
	trip    trip
	hasty   bool
	forgot  atomic.Bool    // the server has, in this program, all scripts
	trips   sync.WaitGroup // that are under way
	closing []func() error
}

// A trip is how long it takes to ask a server.
type trip struct {
	There, Back time.Duration
	Uneven      time.Duration // what every second request takes longer
	Trust       time.Duration // for how long refusals are remembered
}

// longest is how long a request takes at most.
func (t trip) longest() time.Duration { return t.There + t.Back + t.Uneven }

// wireBegin is when programs begin on a wire at the earliest: the server itself is never there,
// and expires nothing.
var wireBegin = time.Date(2126, time.January, 1, 0, 0, 0, 0, time.UTC)

// A farServer is a real server, and its client that is far away from nothing.
type farServer struct {
	*redisclock.Server
	client *redis.Client
	hash   *redis.Client // for overrides, which no fault of the counts takes away
	shows  time.Time     // by the clock of hash
}

func newFarServer(t *testing.T) *farServer {
	server := redistest.Start(t)
	s := &farServer{client: server.Client(t), hash: server.Client(t, func(o *redis.Options) { o.DB = 1 })}
	s.Server = redisclock.NewServer(t, s.client)
	s.hash.AddHook(clockHook{&s.shows})
	return s
}

func newWire(p *program, server *farServer) *wire {
	w := &wire{server: server, trip: p.Trip, hasty: p.Hasty}
	if p.Begins.Before(wireBegin) {
		p.Begins = wireBegin
	}
	w.open(p)
	server.Outside(func() { server.client.FlushAll(context.Background()) })
	return w
}

func (w *wire) back(since time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jumped >= since {
		return 0
	}
	return w.trip.Back
}

func (w *wire) still() bool { return false }
func (w *wire) parts() bool { return false }

func (w *wire) store(int) runtime.Store {
	timeout := patience
	if w.hasty {
		timeout = haste
	}
	store := wrapper.NewRedisStore(w.way(), runtime.WithTimeout(timeout), runtime.WithRefusalMemory(w.trip.Trust))
	w.closing = append(w.closing, store.Close)
	return store
}

func (w *wire) close() {
	for _, end := range w.closing {
		_ = end()
	}
	w.trips.Wait()
}

func (w *wire) begin(f fault) (end func()) {
	if f == flushed || f == killed {
		w.server.Outside(func() { w.server.client.FlushDB(context.Background()) })
	}
	if f == killed || f == unscripted {
		w.forgot.Store(true)
		w.server.Outside(func() { w.server.Forget() })
	}
	return w.bubble.begin(f)
}

// errLost is the error of a request whose answer is lost.
var errLost = errors.New("the answer is lost")

// way returns how a store of its own asks the server.
func (w *wire) way() *redisclock.Client {
	sent := new(atomic.Int64)
	return &redisclock.Client{Server: w.server.Server, Forgot: w.forgot.Load, Trip: func(ctx context.Context, ask func() error) error {
		there, answer := w.trip.There, make(chan error, 1)
		if sent.Add(1)%2 == 0 {
			there += w.trip.Uneven
		}
		w.trips.Go(func() { answer <- w.travel(there, ask) })
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// travel makes a trip, on which something is done at the server.
func (w *wire) travel(there time.Duration, ask func() error) error {
	time.Sleep(there)
	faults, changed := w.troubles()
	for faults[frozen] > 0 {
		<-changed
		faults, changed = w.troubles()
	}
	if faults[down]+faults[killed] > 0 {
		return rediswire.NotSent(errFault)
	}
	if faults[slow] > 0 {
		time.Sleep(3 * time.Millisecond)
	}
	_ = ask()
	if faults[slow] > 0 {
		time.Sleep(3 * time.Millisecond)
	}
	time.Sleep(w.trip.Back)
	if faults[lost] > 0 {
		return errLost
	}
	return nil
}
