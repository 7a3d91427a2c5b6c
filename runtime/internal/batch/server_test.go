package batch

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A server is a Redis in a bubble of testing/synctest: a hook of the client that
// answers in place of a network, after a delay and not while it is stalled. It
// admits everything.
type server struct {
	delay    time.Duration
	punctual bool

	mu      sync.Mutex
	stalled chan struct{} // closed when it goes on; nil: it is not stalled
	reply   func(keys int) ([]int64, error)

	batches, calls atomic.Int64
	inFlight, most atomic.Int64
}

func (s *server) client(tb testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", ContextTimeoutEnabled: s.punctual, PoolSize: 20,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF },
	})
	client.AddHook(s)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func (*server) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*server) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *server) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "ping" {
			return nil
		}
		s.batches.Add(1)
		n := s.inFlight.Add(1)
		for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
		}
		err := s.wait(ctx)
		s.inFlight.Add(-1)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		keys := int(*cmd.Args()[2].(*int64))
		s.calls.Add(int64(keys))
		s.mu.Lock()
		reply := s.reply
		s.mu.Unlock()
		if reply == nil {
			reply = admit
		}
		numbers, err := reply(keys)
		cmd.(interface{ SetVal([]int64) }).SetVal(numbers)
		cmd.SetErr(err)
		return err
	}
}

// admit is the reply of take.lua that admits a call on each of so many keys.
func admit(keys int) ([]int64, error) {
	numbers := make([]int64, 1+2*keys)
	numbers[0] = 1
	return numbers, nil
}

// wait returns when the server has answered, or when the client gives up.
func (s *server) wait(ctx context.Context) error {
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

func (s *server) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = make(chan struct{})
}

func (s *server) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled != nil {
		close(s.stalled)
		s.stalled = nil
	}
}

// A subject is a batcher under test and what it reports.
type subject struct {
	*Batcher
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

func newSubject(tb testing.TB, s *server) *subject {
	waiters = newWaiters() // whose channels belong to a bubble
	b := &subject{started: time.Now()}
	b.cfg = &Config{
		Timeout: timeout, Denials: denials.New(time.Second), Doubt: func(error) {},
		Changed: func(_ string, open bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.turns = append(b.turns, turn{open, time.Since(b.started)})
		},
		Panicked: func(value any) { tb.Errorf("panic: %v", value) },
	}
	b.Batcher = New(b.cfg, goredis.New(s.client(tb)))
	return b
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
	w := NewWaiter(script.Take, clock.Now())
	*w.Charge() = terms.Charge{Terms: terms.Terms{Algorithm: terms.FixedWindow, Window: 1e6, Max: 1e6}, Cost: 1}
	w.SetKey([]byte(key))
	w.EndCall(false)
	w.Seal()
	err := s.Do(ctx, w)
	if err == nil {
		err = w.Calls[0].Err
		w.Free()
	}
	return err
}
