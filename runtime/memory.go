package runtime

import (
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Store keeps the counts of limits and decides calls. [RedisStore] shares them between
// processes, [MemoryStore] keeps them in this one.
//
// Only this module makes stores: what a store is asked, and in which terms, may change with
// every release. A type that embeds one of them is a Store, too, and decides as that does.
type Store interface{ backend() backend }

// A backend is what a limiter has of its store.
type backend struct {
	terms.Store              // nil: every call is decided by its rule's failure policy
	memory      *MemoryStore // that decides, or stands behind what decides, or nil
	redis       *RedisStore  // likewise
	builtIn     bool         // one of the two decides, which takes a bounded time
	leases      bool         // a process may lease limits, because other processes share them
}

// defaultMaxKeys is how many keys a [MemoryStore] holds by default.
const defaultMaxKeys = 131_072

// A MemoryStore keeps counts in this process. It decides exactly as [RedisStore] does, for one
// process; use it in tests, for limits that are meant for a process, and as what [FailLocal]
// falls back to.
//
// It holds a bounded number of keys and starts no goroutine. When it is full, a new key pushes
// out one that would be forgotten anyway, or else of a few the one to be forgotten first, and
// a blocked one last. The log says once, keys_forgotten, that what still counted was lost, and
// once that a block was.
type MemoryStore struct {
	states    *memstate.Store
	maxKeys   int
	clock     func() int64     // in place of the process's, or nil
	listeners report.Listeners // the limiters on the store
	peers     peerstate.Table
}

// A MemoryOption configures a [MemoryStore].
type MemoryOption func(*MemoryStore)

// WithMaxKeys sets how many keys the store holds at most, rounded up to a multiple of 64. The
// default is 131,072.
func WithMaxKeys(n int) MemoryOption { return func(s *MemoryStore) { s.maxKeys = n } }

// WithClock makes the store tell the time by now, in place of the process's clock: for tests
// that move time themselves, see package ratetest. A limiter on the store counts by it as well
// where it decides alone. Calls still wait for their turn by the process's clock, and permits
// are renewed by it. Now must be safe for concurrent use. A nil now changes nothing.
func WithClock(now func() time.Time) MemoryOption {
	return func(s *MemoryStore) {
		if now != nil {
			s.clock = func() int64 { return now().UnixMicro() }
		}
	}
}

// NewMemoryStore returns an empty store.
func NewMemoryStore(opts ...MemoryOption) *MemoryStore {
	s := &MemoryStore{maxKeys: defaultMaxKeys}
	for _, opt := range opts {
		opt(s)
	}
	s.states = memstate.NewStore(s.maxKeys)
	s.states.Clock, s.states.Tells = s.clock, true
	s.states.Lost = func(blocked bool) {
		s.listeners.Events().Log.KeysForgotten(blocked, s.states.Bound(), "runtime.WithMaxKeys")
	}
	return s
}

func (s *MemoryStore) backend() backend {
	if s == nil || s.states == nil {
		return backend{}
	}
	return backend{Store: s.states, memory: s, builtIn: true}
}
