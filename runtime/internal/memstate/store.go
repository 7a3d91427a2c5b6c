package memstate

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Store is a Map with a clock: a [terms.Store].
type Store struct {
	*Map
	// Clock returns the time in microseconds since 1970. Nil: that of the process.
	Clock func() int64

	epoch int64 // where instants count from, in nanoseconds since 1970
}

// NewStore returns an empty Store for a number of keys, see [New].
func NewStore(maxKeys int) *Store {
	return &Store{Map: New(maxKeys), epoch: time.Now().UnixNano() - int64(clock.Now())}
}

// Time returns an instant as microseconds since 1970. They go on evenly when
// the wall clock is set.
func (s *Store) Time(at time.Duration) int64 {
	if s.Clock != nil {
		return s.Clock()
	}
	return (s.epoch + int64(at)) / 1000
}

func (s *Store) Take(_ context.Context, calls []terms.Call) error {
	s.decide(calls, true)
	return nil
}

func (s *Store) Peek(_ context.Context, calls []terms.Call) error {
	s.decide(calls, false)
	return nil
}

func (s *Store) decide(calls []terms.Call, commit bool) {
	now := s.Time(terms.ArrivalOf(calls))
	for i := range calls {
		call := &calls[i]
		conflict := -1
		call.Err = nil
		if len(call.Charges) != 1 {
			conflict = s.DecideAll(now, call.Charges, commit)
		} else if !s.decideOne(now, &call.Charges[0], commit) {
			conflict = 0
		}
		if conflict >= 0 {
			call.Err = errOtherState(&call.Charges[conflict])
		}
	}
}

func (s *Store) decideOne(now int64, c *terms.Charge, commit bool) (ok bool) {
	if !commit {
		return s.Map.Peek(now, c)
	}
	_, _, ok = s.Map.Take(now, c)
	return ok
}

func (s *Store) Settle(_ context.Context, charges []terms.Charge) error {
	now := s.Time(clock.Now())
	for i := range charges {
		c := &charges[i]
		c.Err = nil
		if !s.Map.Settle(now, c) {
			c.Err = errOtherState(c)
		}
	}
	return nil
}

func (s *Store) Renew(_ context.Context, calls []terms.Call) error {
	now := s.Time(clock.Now())
	for i := range calls {
		call := &calls[i]
		call.Err = nil
		for j := range call.Charges {
			if !s.Map.Renew(now, &call.Charges[j]) {
				call.Err = errOtherState(&call.Charges[j])
			}
		}
	}
	return nil
}

func (s *Store) Hold(_ context.Context, charges []terms.Charge) error {
	now := s.Time(clock.Now())
	for i := range charges {
		c := &charges[i]
		c.Err = nil
		if !s.Map.Hold(now, c) {
			c.Err = errOtherState(c)
		}
	}
	return nil
}

func (s *Store) Reset(_ context.Context, charges []terms.Charge) error {
	now := s.Time(clock.Now())
	for i := range charges {
		c := charges[i]
		if c.Lapses() || c.Ledger {
			c.Cost = 0
			if s.Map.Renew(now, &c) {
				if c.Ledger && c.Blocks() {
					c.At = 0
					s.Map.Hold(now, &c)
				}
				continue
			}
		}
		s.Map.Reset(c.Key)
	}
	return nil
}
