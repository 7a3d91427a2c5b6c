package runtime

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// DefaultMaxKeys is how many keys a [MemoryStore] holds by default.
const DefaultMaxKeys = 65_536

// memoryShards is at most 64, so that a set of shards fits a word.
const memoryShards = 64

// A MemoryStore keeps counts in this process. It decides exactly as
// [RedisStore] does, for one process; use it in tests, for limits that are
// meant for a process, and as what [FailLocal] falls back to.
//
// It holds a bounded number of keys and starts no goroutine. When it is full,
// a new key pushes out one of those that mean least: one that is forgotten
// anyway, or else the soonest to be of a few.
type MemoryStore struct {
	seed   maphash.Seed
	cap    int // keys in a shard
	clock  func() int64
	shards [memoryShards]memoryShard
}

// A MemoryOption configures a [MemoryStore].
type MemoryOption func(*MemoryStore)

// WithMaxKeys sets how many keys the store holds at most, rounded up to a
// multiple of 64. The default is [DefaultMaxKeys].
func WithMaxKeys(n int) MemoryOption {
	return func(s *MemoryStore) { s.cap = max(1, (n+memoryShards-1)/memoryShards) }
}

// NewMemoryStore returns an empty store.
func NewMemoryStore(opts ...MemoryOption) *MemoryStore {
	s := &MemoryStore{
		seed:  maphash.MakeSeed(),
		cap:   DefaultMaxKeys / memoryShards,
		clock: func() int64 { return time.Now().UnixMicro() },
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Take implements [Store].
func (s *MemoryStore) Take(_ context.Context, calls []Call) error {
	return s.decide(calls, true)
}

// Peek implements [Store].
func (s *MemoryStore) Peek(_ context.Context, calls []Call) error {
	return s.decide(calls, false)
}

// Refund implements [Store].
func (s *MemoryStore) Refund(_ context.Context, charges []Charge) error {
	clock := s.clock()
	for i := range charges {
		c := &charges[i]
		shard := s.shard(c.Key)
		shard.mu.Lock()
		if state := shard.find(c.Key, clock); state != nil && state.of(c.Rule) {
			state.refund(clock, c)
		}
		shard.mu.Unlock()
	}
	return nil
}

// Reset implements [Store].
func (s *MemoryStore) Reset(_ context.Context, charges []Charge) error {
	for i := range charges {
		shard := s.shard(charges[i].Key)
		shard.mu.Lock()
		delete(shard.keys, string(charges[i].Key))
		shard.mu.Unlock()
	}
	return nil
}

func (s *MemoryStore) decide(calls []Call, charge bool) error {
	clock := s.clock()
	for i := range calls {
		calls[i].Err = s.decideCall(clock, calls[i].Charges, charge)
	}
	return nil
}

// decideCall is take.lua for one call.
func (s *MemoryStore) decideCall(clock int64, charges []Charge, charge bool) error {
	defer s.unlock(s.lock(charges))
	var array [MaxLimits]memoryState
	states := array[:0]
	admitted := true
	for i := range charges {
		c := &charges[i]
		state := s.shard(c.Key).find(c.Key, clock)
		if state == nil {
			state = newMemoryState(c.Rule)
		} else if !state.of(c.Rule) {
			return fmt.Errorf("the key of rule %q holds the state of another algorithm", c.Rule.Name)
		}
		states = append(states, state)
		room, retry, reset := state.look(clock, c)
		c.Result = Result{
			Allowed:    retry == 0,
			Remaining:  max(0, room),
			RetryAfter: micros(retry),
			ResetAfter: micros(reset),
		}
		admitted = admitted && (c.Allowed || c.Rule.Mode == Shadow)
	}
	if !charge || !admitted {
		return nil
	}
	for i, state := range states {
		c := &charges[i]
		if !c.Allowed {
			continue
		}
		at, reset, delay := state.charge(clock, c)
		c.Remaining -= c.Cost
		c.At, c.ResetAfter, c.Delay = at, micros(reset), micros(delay)
		if shard := s.shard(c.Key); shard.keys[string(c.Key)] != state {
			shard.add(c.Key, state, clock, s.cap)
		}
	}
	return nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (s *MemoryStore) index(key []byte) int {
	return int(maphash.Bytes(s.seed, key) % memoryShards)
}

func (s *MemoryStore) shard(key []byte) *memoryShard { return &s.shards[s.index(key)] }

// lock locks the shards of the charges, each once and in ascending order so
// that no two calls wait for each other, and returns which.
func (s *MemoryStore) lock(charges []Charge) (locked uint64) {
	for i := range charges {
		locked |= 1 << s.index(charges[i].Key)
	}
	for set := locked; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
	return locked
}

func (s *MemoryStore) unlock(locked uint64) {
	for set := locked; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// A memoryShard is a part of the keys behind a lock of its own.
type memoryShard struct {
	mu   sync.Mutex
	keys map[string]memoryState
}

// A memoryState is what a MemoryStore keeps of one key: the counterpart of an
// algorithm in package lua, operation by operation. Times are in microseconds,
// clock is the store's own and may step back.
type memoryState interface {
	// of reports whether the state is of the rule's algorithm.
	of(*Rule) bool
	// look returns how much could be charged now, which is below 0 if max was
	// lowered; the time until the charge fits, 0 if it does; and the time
	// until the limit is whole again.
	look(clock int64, c *Charge) (room, retry, reset int64)
	// charge makes the charge that the look just before found to fit. It
	// returns the charge's time, the time until the limit is whole again, and
	// the time that the caller must wait for its turn.
	charge(clock int64, c *Charge) (at, reset, delay int64)
	// refund takes back up to c.Cost of what was charged at c.At.
	refund(clock int64, c *Charge)
	// until returns the time from which the state means nothing.
	until() int64
}

// forgotten reports whether Redis would have dropped the key by now. It counts
// that in milliseconds, and keeps a key for 100 of them longer than needed; see
// lifetime in prelude.lua.
func forgotten(state memoryState, clock int64) bool {
	return (state.until()+999)/1000+100 <= clock/1000
}

// find returns the state of a key, or nil if there is none or Redis would have
// dropped it by now.
func (s *memoryShard) find(key []byte, clock int64) memoryState {
	state := s.keys[string(key)]
	if state != nil && forgotten(state, clock) {
		delete(s.keys, string(key))
		return nil
	}
	return state
}

// add sets the state of a key, and makes room for it if it is new.
func (s *memoryShard) add(key []byte, state memoryState, clock int64, limit int) {
	if s.keys == nil {
		s.keys = make(map[string]memoryState)
	}
	if s.keys[string(key)] == nil {
		s.evict(clock, limit)
	}
	s.keys[string(key)] = state
}

// evict makes room for one more key. It looks at a few, drops those that mean nothing any more, and, if
// the shard is full all the same, the one that is the soonest to. Every new
// key pays for it, so that dead keys go as fast as new ones come.
func (s *memoryShard) evict(clock int64, limit int) {
	const sample = 5
	if len(s.keys) < min(limit, 2*sample) {
		return
	}
	seen, victim, soonest := 0, "", int64(0)
	for key, state := range s.keys {
		until := state.until()
		if forgotten(state, clock) {
			delete(s.keys, key)
		} else if victim == "" || until < soonest {
			victim, soonest = key, until
		}
		if seen++; seen == sample {
			break
		}
	}
	if len(s.keys) >= limit {
		delete(s.keys, victim)
	}
}

func newMemoryState(r *Rule) memoryState {
	switch r.Algorithm {
	case SlidingLog:
		return new(memoryLog)
	case SlidingCounter:
		return new(memoryCounter)
	case FixedWindow:
		return new(memoryWindow)
	default:
		return new(memoryBucket)
	}
}
