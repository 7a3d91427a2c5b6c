package runtime

import (
	"context"
	"fmt"
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
		c := &charges[i]
		shard, hash := s.shard(c.Key)
		shard.mu.Lock()
		if state, _ := shard.find(hash, c.Key, clock); state != nil && state.of(c.Rule) {
			state.refund(clock, c)
		}
		shard.mu.Unlock()
	}
	return nil
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

// decideOne is take.lua for a call with one limit, as most have. The key is not
// the charge's, so that it may be on the caller's stack.
func (s *MemoryStore) decideOne(clock int64, key []byte, c *Charge, charge bool) error {
	v := s.visit(key)
	v.shard.mu.Lock()
	defer v.shard.mu.Unlock()
	if err := v.look(clock, key, c); err != nil {
		return err
	}
	if charge && c.Allowed {
		v.charge(clock, key, c, s.cap)
	} else if charge {
		v.heal(clock, c)
	}
	return nil
}

// decideAll is take.lua for a call with any number of limits.
func (s *MemoryStore) decideAll(clock int64, charges []Charge, charge bool) error {
	var array [MaxLimits]visit
	visits := array[:0]
	locked := uint64(0)
	for i := range charges {
		v := s.visit(charges[i].Key)
		locked |= 1 << (v.hash % memoryShards)
		visits = append(visits, v)
	}
	s.lock(locked)
	defer s.unlock(locked)

	admitted := true
	for i := range visits {
		c := &charges[i]
		if err := visits[i].look(clock, c.Key, c); err != nil {
			return err
		}
		admitted = admitted && (c.Allowed || c.Rule.Mode == Shadow)
	}
	if !charge {
		return nil
	}
	for i := range visits {
		if c := &charges[i]; admitted && c.Allowed {
			visits[i].charge(clock, c.Key, c, s.cap)
		} else {
			visits[i].heal(clock, c)
		}
	}
	return nil
}

// A visit is one charge of a call meeting the key it names.
type visit struct {
	shard *memoryShard
	hash  uint64
	state memoryState
	fresh bool   // the state is not in the shard yet
	name  string // the key as the shard kept it until now, or ""
}

func (s *MemoryStore) visit(key []byte) visit {
	shard, hash := s.shard(key)
	return visit{shard: shard, hash: hash}
}

// heal keeps a key that nothing is charged to from being forgotten too early,
// which it is if it was charged by a shorter window. See take.lua.
func (v *visit) heal(clock int64, c *Charge) {
	if reset := c.ResetAfter.Microseconds(); reset > 0 && dies(v.state)*1000-clock < reset {
		v.state.keep(clock + reset + slack(c.Rule))
	}
}

// look fills in what is found about a charge.
func (v *visit) look(clock int64, key []byte, c *Charge) error {
	var dropped memorySlot
	if v.state, dropped = v.shard.find(v.hash, key, clock); v.state == nil {
		v.state, v.fresh, v.name = newMemoryState(c.Rule, dropped.state), true, dropped.key
	} else if !v.state.of(c.Rule) {
		return fmt.Errorf("the key of rule %q holds the state of another algorithm", c.Rule.Name)
	}
	room, retry, reset := look(v.state, clock, c)
	c.Result = Result{
		Allowed:    retry == 0,
		Remaining:  max(0, room),
		RetryAfter: micros(retry),
		ResetAfter: micros(reset),
	}
	return nil
}

// charge makes a charge that look has just found to fit.
func (v *visit) charge(clock int64, key []byte, c *Charge, limit int) {
	at, reset, delay := charge(v.state, clock, c)
	c.Remaining = max(0, c.Remaining-c.Cost) // a bucket's level may have hidden one
	c.At, c.ResetAfter, c.Delay = at, micros(reset), micros(delay)
	if v.fresh {
		if v.name == "" {
			v.name = string(key)
		}
		v.shard.add(v.hash, v.name, v.state, clock, limit)
	}
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
