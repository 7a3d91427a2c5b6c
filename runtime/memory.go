package runtime

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
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

// A visit is one charge of a call meeting the key it names.
type visit struct {
	shard *memoryShard
	state memoryState
	fresh bool // the state is not in the shard yet
}

// decideCall is take.lua for one call.
func (s *MemoryStore) decideCall(clock int64, charges []Charge, charge bool) error {
	var array [MaxLimits]visit
	visits := array[:0]
	locked := uint64(0)
	for i := range charges {
		index := s.index(charges[i].Key)
		locked |= 1 << index
		visits = append(visits, visit{shard: &s.shards[index]})
	}
	s.lock(locked)
	defer s.unlock(locked)

	admitted := true
	for i := range visits {
		v, c := &visits[i], &charges[i]
		if v.state = v.shard.find(c.Key, clock); v.state == nil {
			v.state, v.fresh = newMemoryState(c.Rule), true
		} else if !v.state.of(c.Rule) {
			return fmt.Errorf("the key of rule %q holds the state of another algorithm", c.Rule.Name)
		}
		room, retry, reset := v.state.look(clock, c)
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
	for i := range visits {
		v, c := &visits[i], &charges[i]
		if !c.Allowed {
			continue
		}
		at, reset, delay := v.state.charge(clock, c)
		c.Remaining = max(0, c.Remaining-c.Cost) // a bucket's level may have hidden one
		c.At, c.ResetAfter, c.Delay = at, micros(reset), micros(delay)
		if v.fresh {
			v.shard.add(c.Key, v.state, clock, s.cap)
		}
	}
	return nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (s *MemoryStore) index(key []byte) int {
	return int(maphash.Bytes(s.seed, key) % memoryShards)
}

func (s *MemoryStore) shard(key []byte) *memoryShard { return &s.shards[s.index(key)] }

// lock locks a set of shards in ascending order, so that no two calls wait for
// each other.
func (s *MemoryStore) lock(set uint64) {
	for ; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
}

func (s *MemoryStore) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}
