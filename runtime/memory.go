package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/private"
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
	states  *memstate.Map
	maxKeys int
	epoch   int64        // where instants count from, in nanoseconds since 1970
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
	s := &MemoryStore{maxKeys: DefaultMaxKeys, epoch: time.Now().UnixNano() - int64(instant())}
	for _, opt := range opts {
		opt(s)
	}
	s.states = memstate.New(s.maxKeys)
	return s
}

// Take implements [Store].
func (s *MemoryStore) Take(_ context.Context, calls []Call) error {
	s.decide(calls, true)
	return nil
}

// Peek implements [Store].
func (s *MemoryStore) Peek(_ context.Context, calls []Call) error {
	s.decide(calls, false)
	return nil
}

// Settle implements [Store].
func (s *MemoryStore) Settle(_ context.Context, charges []Charge) error {
	clock := s.time(instant())
	var failed error
	for i := range charges {
		failed = errors.Join(failed, s.settleOne(clock, &charges[i]))
	}
	return failed
}

// Renew implements [Store].
func (s *MemoryStore) Renew(_ context.Context, calls []Call) error {
	clock := s.time(instant())
	for i := range calls {
		call := &calls[i]
		call.Err = nil
		for j := range call.Charges {
			c := &call.Charges[j]
			plain := c.engine()
			if !s.states.Renew(clock, &plain) {
				call.Err = errOtherState(c.Rule)
			}
			c.At = plain.At
		}
	}
	return nil
}

// Hold implements [Store].
func (s *MemoryStore) Hold(_ context.Context, charges []Charge) error {
	clock := s.time(instant())
	var failed error
	for i := range charges {
		plain := charges[i].hold()
		if !s.states.Hold(clock, &plain) {
			failed = errors.Join(failed, errOtherState(charges[i].Rule))
		}
	}
	return failed
}

// Reset implements [Store].
func (s *MemoryStore) Reset(_ context.Context, charges []Charge) error {
	clock := s.time(instant())
	for i := range charges {
		if c := &charges[i]; c.Rule.Algorithm == Concurrency {
			plain := c.engine()
			if plain.Cost = 0; s.states.Renew(clock, &plain) {
				continue
			}
		}
		s.states.Reset(charges[i].Key)
	}
	return nil
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

// time returns an instant as microseconds since 1970. They go on evenly when
// the wall clock is set.
func (s *MemoryStore) time(at time.Duration) int64 {
	if s.clock != nil {
		return s.clock()
	}
	return (s.epoch + int64(at)) / 1000
}

func (s *MemoryStore) decide(calls []Call, commit bool) {
	clock := s.time(instantOf(calls))
	for i := range calls {
		if call := &calls[i]; len(call.Charges) == 1 {
			call.Err = s.decideOne(clock, &call.Charges[0], commit)
		} else {
			call.Err = s.decideAll(clock, call.Charges, commit)
		}
	}
}

// decideOne decides a call with one charge.
func (s *MemoryStore) decideOne(clock int64, c *Charge, commit bool) error {
	plain := terms.Charge{Key: c.Key, Cost: c.Cost}
	c.Rule.setTerms(&plain.Terms, c.Max, c.Wait)
	if !s.states.Decide(clock, &plain, commit) {
		return errOtherState(c.Rule)
	}
	c.Result = Result(plain.Result)
	return nil
}

// decideAll decides a call with any number of charges, also with none.
func (s *MemoryStore) decideAll(clock int64, charges []Charge, commit bool) error {
	switch n := len(charges); {
	case n <= 2: // most calls; a larger array takes longer to clear
		var plain [2]terms.Charge
		return s.decideIn(plain[:n], clock, charges, commit)
	case n <= MaxLimits:
		var plain [MaxLimits]terms.Charge
		return s.decideIn(plain[:n], clock, charges, commit)
	default:
		return s.decideIn(make([]terms.Charge, n), clock, charges, commit)
	}
}

// decideIn decides a call. Plain is as many empty charges, on the caller's stack.
func (s *MemoryStore) decideIn(plain []terms.Charge, clock int64, charges []Charge, commit bool) error {
	for i := range charges {
		c, p := &charges[i], &plain[i]
		c.Rule.setTerms(&p.Terms, c.Max, c.Wait)
		p.Key, p.Cost = c.Key, c.Cost
	}
	if i := s.states.DecideAll(clock, plain, commit); i >= 0 {
		return errOtherState(charges[i].Rule)
	}
	for i := range charges {
		if charges[i].Result, charges[i].Err = Result(plain[i].Result), nil; plain[i].Failed {
			charges[i].Err = errOtherState(charges[i].Rule)
		}
	}
	return nil
}

// settleOne settles one charge.
func (s *MemoryStore) settleOne(clock int64, c *Charge) error {
	plain := c.difference()
	plain.Key = c.Key
	if !s.states.Settle(clock, &plain) {
		return errOtherState(c.Rule)
	}
	return nil
}

func errOtherState(r *Rule) error {
	return private.Errorf("the key of rule %q holds the state of another algorithm", r.Name)
}
