package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// DefaultMaxKeys is how many keys a [MemoryStore] holds by default.
const DefaultMaxKeys = 131_072

// A MemoryStore keeps counts in this process. It decides exactly as
// [RedisStore] does, for one process; use it in tests, for limits that are
// meant for a process, and as what [FailLocal] falls back to.
//
// It holds a bounded number of keys and starts no goroutine. When it is full,
// a new key pushes out one of those that mean least: one that is forgotten
// anyway, or else the soonest to be of a few.
type MemoryStore struct {
	states  *memstate.Store
	maxKeys int
	clock   func() int64 // in place of the process's, or nil
}

// A MemoryOption configures a [MemoryStore].
type MemoryOption func(*MemoryStore)

// WithMaxKeys sets how many keys the store holds at most, rounded up to a
// multiple of 64. The default is [DefaultMaxKeys].
func WithMaxKeys(n int) MemoryOption {
	return func(s *MemoryStore) { s.maxKeys = n }
}

// WithClock makes the store tell the time by now, in place of the process's clock:
// for tests that move time themselves, see package ratetest. A limiter on the store
// counts by it as well where it decides alone, see [FailLocal] and [WithProcessCap].
// Calls still wait for their turn by the process's clock, and permits are renewed by
// it. Now must be safe for concurrent use. A nil now changes nothing.
func WithClock(now func() time.Time) MemoryOption {
	return func(s *MemoryStore) {
		if now != nil {
			s.clock = func() int64 { return now().UnixMicro() }
		}
	}
}

// NewMemoryStore returns an empty store.
func NewMemoryStore(opts ...MemoryOption) *MemoryStore {
	s := &MemoryStore{maxKeys: DefaultMaxKeys}
	for _, opt := range opts {
		opt(s)
	}
	s.states = memstate.NewStore(s.maxKeys)
	s.states.Clock = s.clock
	return s
}

// Take implements [Store].
func (s *MemoryStore) Take(ctx context.Context, calls []terms.Call) error {
	return s.states.Take(ctx, calls)
}

// Peek implements [Store].
func (s *MemoryStore) Peek(ctx context.Context, calls []terms.Call) error {
	return s.states.Peek(ctx, calls)
}

// Settle implements [Store].
func (s *MemoryStore) Settle(ctx context.Context, charges []terms.Charge) error {
	return s.states.Settle(ctx, charges)
}

// Renew implements [Store].
func (s *MemoryStore) Renew(ctx context.Context, calls []terms.Call) error {
	return s.states.Renew(ctx, calls)
}

// Hold implements [Store].
func (s *MemoryStore) Hold(ctx context.Context, charges []terms.Charge) error {
	return s.states.Hold(ctx, charges)
}

// Reset implements [Store].
func (s *MemoryStore) Reset(ctx context.Context, charges []terms.Charge) error {
	return s.states.Reset(ctx, charges)
}

// An inMemory store is a MemoryStore, or embeds one.
type inMemory interface{ memory() *MemoryStore }

func (s *MemoryStore) memory() *MemoryStore { return s }

// memoryOf returns the MemoryStore that a store is or embeds, or nil.
func memoryOf(store Store) *MemoryStore {
	if s, ok := store.(inMemory); ok {
		return s.memory()
	}
	return nil
}
