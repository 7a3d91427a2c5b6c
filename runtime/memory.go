package runtime

import (
	"context"
	"hash/maphash"
	"math/bits"
	"time"
)

// DefaultMaxKeys is how many keys a [MemoryStore] holds by default.
const DefaultMaxKeys = 131_072

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
	cap    int          // keys in a shard
	epoch  int64        // what instants count from, in nanoseconds since 1970
	clock  func() int64 // in place of the process's, or nil
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
		epoch: time.Now().UnixNano() - int64(instant()),
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
	clock := s.time(instant())
	for i := range charges {
		s.refundOne(clock, charges[i].Key, &charges[i])
	}
	return nil
}

// refundOne refunds one charge. As for decideOne, the key is not the charge's.
func (s *MemoryStore) refundOne(clock int64, key []byte, c *Charge) {
	shard, hash := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if e := shard.find(hash, key, clock); e != nil && e.become(c.Rule) {
		e.refund(clock, c)
	}
}

// Reset implements [Store].
func (s *MemoryStore) Reset(_ context.Context, charges []Charge) error {
	for i := range charges {
		shard, hash := s.shard(charges[i].Key)
		shard.mu.Lock()
		shard.reset(hash, charges[i].Key)
		shard.mu.Unlock()
	}
	return nil
}

// time returns an instant as microseconds since 1970. They go on evenly when
// the wall clock is set.
func (s *MemoryStore) time(at time.Duration) int64 {
	if s.clock != nil {
		return s.clock()
	}
	return (s.epoch + int64(at)) / 1000
}

func (s *MemoryStore) decide(calls []Call, charge bool) error {
	clock := s.time(instantOf(calls))
	for i := range calls {
		if call := &calls[i]; len(call.Charges) == 1 {
			call.Err = s.decideOne(clock, call.Charges[0].Key, &call.Charges[0], charge)
		} else {
			call.Err = s.decideAll(clock, call.Charges, charge)
		}
	}
	return nil
}

// decideOne decides a call with one limit, as most have. The key is not the
// charge's, so that it may be on the caller's stack.
func (s *MemoryStore) decideOne(clock int64, key []byte, c *Charge, charge bool) error {
	shard, hash := s.shard(key)
	shard.mu.Lock()
	err := shard.decide(clock, hash, key, c, charge, s.cap)
	shard.mu.Unlock() // not deferred, which would take as long as the lock
	return err
}

// decideAll is take.lua for a call with any number of limits.
func (s *MemoryStore) decideAll(clock int64, charges []Charge, charge bool) error {
	var array [MaxLimits]uint64
	hashes := array[:0]
	locked := uint64(0)
	for i := range charges {
		_, hash := s.shard(charges[i].Key)
		locked |= 1 << (hash % memoryShards)
		hashes = append(hashes, hash)
	}
	s.lock(locked)
	defer s.unlock(locked)

	var v memoryView
	admitted := true
	for i, hash := range hashes {
		c := &charges[i]
		if _, err := s.shards[hash%memoryShards].look(clock, hash, c.Key, c, &v); err != nil {
			return err
		}
		admitted = admitted && (c.Allowed || c.Rule.Mode == Shadow)
	}
	if !charge {
		return nil
	}
	for i, hash := range hashes {
		// It looks again, since what it found may have gone to make room for a
		// charge before.
		c, shard := &charges[i], &s.shards[hash%memoryShards]
		e, err := shard.look(clock, hash, c.Key, c, &v)
		switch {
		case err != nil:
			return err
		case admitted && c.Allowed:
			shard.charge(clock, hash, c.Key, c, &v, e, s.cap)
		case e != nil:
			e.heal(clock, c, &v)
		}
	}
	return nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// shard returns where a key is, and its hash.
func (s *MemoryStore) shard(key []byte) (*memoryShard, uint64) {
	hash := maphash.Bytes(s.seed, key)
	return &s.shards[hash%memoryShards], hash
}

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
