package redis

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A fakeClient has what clients of servers under test are, but for what their servers execute.
type fakeClient struct {
	rediswire.Client
	about rediswire.About
}

func (*fakeClient) Advice() (string, string)                 { return "", "" }
func (*fakeClient) Do(context.Context, []rediswire.Command)  {}
func (c *fakeClient) Patient(time.Duration) rediswire.Server { return c }
func (c *fakeClient) About() rediswire.About                 { return c.about }

// admit has a script admit a call on each of its keys, or settle them, and returns how many keys it has.
func admit(s *rediswire.Script) (keys int, settles bool) {
	keys = int(*s.Args[2].(*int64))
	settles = strings.HasSuffix(*s.Args[3+keys].(*string), "settle")
	s.Err, s.Numbers = nil, []int64{1}
	if !settles {
		s.Numbers = append(s.Numbers, make([]int64, 2*keys)...)
	}
	return keys, settles
}

// A fakeServer is a Redis in a bubble of testing/synctest. It admits everything, after a delay and not while it
// is stalled.
type fakeServer struct {
	fakeClient
	delay    time.Duration
	punctual bool

	mu      sync.Mutex
	stalled chan struct{} // closed when it goes on; nil: it is not stalled

	batches, calls atomic.Int64
	inFlight, most atomic.Int64
}

func (s *fakeServer) Execute(ctx context.Context, scripts []*rediswire.Script) {
	s.batches.Add(1)
	n := s.inFlight.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	err := s.wait(ctx)
	s.inFlight.Add(-1)
	for _, script := range scripts {
		if err != nil {
			script.Err = err
		} else if keys, settles := admit(script); !settles {
			s.calls.Add(int64(keys))
		}
	}
}

// wait returns when the server has answered, or when the client gives up.
func (s *fakeServer) wait(ctx context.Context) error {
	if !s.punctual {
		ctx = context.Background()
	}
	s.mu.Lock()
	stalled := s.stalled
	s.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return os.ErrDeadlineExceeded
		}
	}
	if s.delay == 0 { // In Go 1.26 two such timers at once may crash the race detector in a bubble.
		return nil
	}
	select {
	case <-time.After(s.delay):
		return nil
	case <-ctx.Done():
		return os.ErrDeadlineExceeded
	}
}

func (s *fakeServer) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = make(chan struct{})
}

func (s *fakeServer) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled != nil {
		close(s.stalled)
		s.stalled = nil
	}
}

// A subject is a batcher under test and what it reports.
type subject struct {
	*batcher
	cfg *Config

	mu      sync.Mutex
	turns   []turn // of the breaker
	started time.Time
}

type turn struct {
	open bool
	at   time.Duration
}

const timeout = 50 * time.Millisecond

func newSubject(tb testing.TB, s *fakeServer) *subject {
	waiters = newWaiters() // whose channels belong to a bubble
	b := &subject{started: time.Now()}
	b.cfg = quiet(tb)
	b.cfg.Changed = func(_ string, open bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.turns = append(b.turns, turn{open, time.Since(b.started)})
	}
	s.about = rediswire.About{Punctual: s.punctual, Most: 20}
	b.batcher = New(s, b.cfg).only
	return b
}

// quiet returns what a batcher under test has, which reports nothing but panics.
func quiet(tb testing.TB) *Config {
	return &Config{
		Timeout: timeout, Refusals: recall.New(time.Second),
		Undecided: func(error, int) {}, Changed: func(string, bool) {}, Stepped: func(string, time.Duration) {},
		Panicked: func(value any) { tb.Errorf("panic: %v", value) },
	}
}

func (s *subject) opened() (at time.Duration, opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, turn := range s.turns {
		if turn.open {
			return turn.at, true
		}
	}
	return 0, false
}

// take takes a call on a key.
func (s *subject) take(ctx context.Context, key string) error {
	w := called(key)
	err := s.Do(ctx, w)
	if err == nil {
		err = w.Calls[0].Err
		w.Free()
	}
	return err
}

// called returns a waiter for a call on a key that arrives now.
func called(key string) *waiter {
	limit := terms.Terms{Algorithm: algorithm.FixedWindow, Window: 1e6, Max: 1e6}
	charges := []terms.Charge{{Terms: limit, Key: []byte(key), Cost: 1}}
	return waiterOf(script.Take, 0, []terms.Call{{Charges: charges}}, terms.Work, clock.Now())
}
