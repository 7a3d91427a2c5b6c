package redis

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A fakeServer is a Redis in a bubble of testing/synctest: a hook of the client that
// answers in place of a network, after a delay and not while it is stalled. It
// admits everything.
type fakeServer struct {
	delay    time.Duration
	punctual bool

	mu      sync.Mutex
	stalled chan struct{} // closed when it goes on; nil: it is not stalled
	reply   func(keys int) ([]int64, error)

	batches, calls atomic.Int64
	inFlight, most atomic.Int64
}

func (s *fakeServer) client(tb testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", ContextTimeoutEnabled: s.punctual, PoolSize: 20,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF },
	})
	client.AddHook(s)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func (*fakeServer) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *fakeServer) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return s.execute
}
func (s *fakeServer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "ping" {
			return nil
		}
		return s.execute(ctx, []redis.Cmder{cmd})
	}
}

// execute answers what came together, and returns the last error.
func (s *fakeServer) execute(ctx context.Context, commands []redis.Cmder) error {
	s.batches.Add(1)
	n := s.inFlight.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	err := s.wait(ctx)
	s.inFlight.Add(-1)
	s.mu.Lock()
	reply := s.reply
	s.mu.Unlock()
	if reply == nil {
		reply = admit
	}
	var failed error
	for _, cmd := range commands {
		keys, numbers, err := int(*cmd.Args()[2].(*int64)), []int64{1}, err
		if err == nil && !strings.HasSuffix(*cmd.Args()[3+keys].(*string), "settle") {
			s.calls.Add(int64(keys))
			numbers, err = reply(keys)
		}
		cmd.(interface{ SetVal([]int64) }).SetVal(numbers)
		cmd.SetErr(err)
		if err != nil {
			failed = err
		}
	}
	return failed
}

// admit is the reply of take.lua that admits a call on each of so many keys.
func admit(keys int) ([]int64, error) {
	numbers := make([]int64, 1+2*keys)
	numbers[0] = 1
	return numbers, nil
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
	b.batcher = New(goredis.New(s.client(tb)), b.cfg).only
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
