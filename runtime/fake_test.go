package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

var errBroken = errors.New("the store is broken")

// A brokenStore answers every operation with an error.
type brokenStore struct{ takes atomic.Int64 }

// broken returns a store on one.
func broken() runtime.Store { return rawstore.New(new(brokenStore), nil) }

func (s *brokenStore) Take(context.Context, []terms.Call) error {
	s.takes.Add(1)
	return errBroken
}
func (s *brokenStore) Peek(context.Context, []terms.Call) error     { return errBroken }
func (s *brokenStore) Settle(context.Context, []terms.Charge) error { return errBroken }
func (s *brokenStore) Renew(context.Context, []terms.Call) error    { return errBroken }
func (s *brokenStore) Hold(context.Context, []terms.Charge) error   { return errBroken }
func (s *brokenStore) Reset(context.Context, []terms.Charge) error  { return errBroken }

// A fakeStore is a store in memory that counts what it is asked, and does what a test
// wants in place of it. Limiters lease from it as from a store that others share.
type fakeStore struct {
	runtime.Store
	memory                   *runtime.MemoryStore
	engine                   terms.Store // of it
	takes, settles, renewals atomic.Int64

	broken atomic.Bool   // take nothing
	delay  time.Duration // of a take
	take   func(context.Context, []terms.Call) error
	settle func(context.Context, []terms.Charge) error
	renew  func(context.Context, []terms.Call) error
}

func newFake(opts ...runtime.MemoryOption) *fakeStore {
	memory := runtime.NewMemoryStore(opts...)
	s := &fakeStore{memory: memory, engine: rawstore.Wrap(memory).Store}
	s.Store = rawstore.Shared(faked{s.engine, s}, nil)
	return s
}

// onFake returns a limiter on a store of its own that counts what it is asked.
func onFake(opts ...runtime.Option) (*runtime.Limiter, *fakeStore) {
	store := newFake()
	return runtime.New(store, append([]runtime.Option{quiet}, opts...)...), store
}

// trips returns how often the store was asked for decisions and settlements.
func (s *fakeStore) trips() int64 { return s.takes.Load() + s.settles.Load() }

// A faked engine is that of a fakeStore.
type faked struct {
	terms.Store
	*fakeStore
}

func (f faked) Take(ctx context.Context, calls []terms.Call) error {
	f.takes.Add(1)
	if f.broken.Load() {
		return errBroken
	}
	if f.take != nil {
		return f.take(ctx, calls)
	}
	time.Sleep(f.delay)
	return f.engine.Take(ctx, calls)
}

func (f faked) Settle(ctx context.Context, charges []terms.Charge) error {
	f.settles.Add(1)
	if f.settle != nil {
		return f.settle(ctx, charges)
	}
	return f.engine.Settle(ctx, charges)
}

func (f faked) Renew(ctx context.Context, calls []terms.Call) error {
	f.renewals.Add(int64(len(calls)))
	if f.renew != nil {
		return f.renew(ctx, calls)
	}
	return f.engine.Renew(ctx, calls)
}

// commands are the names of what clients send. A pipeline is one.
type commands struct {
	mu    sync.Mutex
	names []string
}

// counting counts what a client sends from now on.
func counting(client interface{ AddHook(redis.Hook) }) *commands {
	c := new(commands)
	client.AddHook(redistest.Hook(c.count))
	return c
}

func (c *commands) count(cmds []redis.Cmder, send func() error) error {
	if !redistest.Connects(cmds...) {
		name := "pipeline"
		if len(cmds) == 1 {
			name = cmds[0].Name()
		}
		c.mu.Lock()
		c.names = append(c.names, name)
		c.mu.Unlock()
	}
	return send()
}

// sent returns what was sent since the last time, but for what made connections.
func (c *commands) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}

// scripts returns how many scripts were sent since the last time.
func (c *commands) scripts() int {
	return len(slices.DeleteFunc(c.sent(), func(name string) bool { return !strings.HasPrefix(name, "eval") }))
}
