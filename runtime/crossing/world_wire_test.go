package crossing

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	store := wrapper.NewRedisStore(&farClient{wire: w}, runtime.WithTimeout(timeout), runtime.WithRefusalMemory(w.trip.Trust))
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

// A farClient is the way to the server of a wire.
type farClient struct {
	wire *wire
	sent atomic.Int64
}

func (c *farClient) About() rediswire.About                 { return rediswire.About{Address: "far", Punctual: true} }
func (c *farClient) Advice() (set, now string)              { return "", "" }
func (c *farClient) Patient(time.Duration) rediswire.Server { return c }

// errLost is the error of a request whose answer is lost.
var errLost = errors.New("the answer is lost")

// ask makes a trip, on which something is done at the server. What it was given may not be used
// after the context is over, so do has copies.
func (c *farClient) ask(ctx context.Context, do func(now int64)) error {
	w, answer := c.wire, make(chan error, 1)
	there := w.trip.There
	if c.sent.Add(1)%2 == 0 {
		there += w.trip.Uneven
	}
	w.trips.Go(func() {
		time.Sleep(there)
		faults, changed := w.troubles()
		for faults[frozen] > 0 {
			<-changed
			faults, changed = w.troubles()
		}
		if faults[down]+faults[killed] > 0 {
			answer <- rediswire.NotSent(errFault)
			return
		}
		if faults[slow] > 0 {
			time.Sleep(3 * time.Millisecond)
		}
		now := w.clock().UnixMicro()
		w.server.Outside(func() { do(now) })
		if faults[slow] > 0 {
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(w.trip.Back)
		if faults[lost] > 0 {
			answer <- errLost
			return
		}
		answer <- nil
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Execute implements [rediswire.Server].
func (c *farClient) Execute(ctx context.Context, scripts []*rediswire.Script) {
	server, sent := c.wire.server, make([]*redisclock.Sent, len(scripts))
	for i, s := range scripts {
		sent[i] = redisclock.NewSent(s)
	}
	err := error(rediswire.Reply("NOSCRIPT No matching script."))
	unknown, known := server.Unknown(sent), sent
	for _, f := range unknown {
		f.Err = err
		known = slices.DeleteFunc(slices.Clone(known), func(o *redisclock.Sent) bool { return o == f })
	}
	if len(unknown) == 0 || len(known) > 0 && c.wire.forgot.Load() {
		err = c.ask(ctx, func(now int64) { server.Execute(now, known) })
	} // else it is known at once: a program takes as long whichever ran before
	for i, s := range scripts {
		s.Numbers, s.Err = nil, err
		if err == nil {
			s.Numbers, s.Err = sent[i].Numbers, sent[i].Err
		}
	}
}

// Do implements [rediswire.Server].
func (c *farClient) Do(ctx context.Context, commands []rediswire.Command) {
	server, sent := c.wire.server, make([]rediswire.Command, len(commands))
	for i := range commands {
		for _, arg := range commands[i].Args {
			sent[i].Args = append(sent[i].Args, strings.Clone(arg))
		}
	}
	err := c.ask(ctx, func(int64) { server.Do(sent) })
	for i := range commands {
		commands[i].Err = err
		if err == nil {
			commands[i].Value, commands[i].Err = sent[i].Value, sent[i].Err
		}
	}
}
