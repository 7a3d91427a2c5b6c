package runtime

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
)

const (
	// maxStanding is how many refusals are looked at that an admission may lift: a stream that
	// lasts for days must not grow.
	maxStanding = 8
	// undecidedStands is for how long a refusal counts that says no time to come back.
	undecidedStands = time.Minute
)

// A standing has the refusals of a request that count for its answer. The zero value has none.
type standing struct {
	some     atomic.Bool // so that requests which are refused nothing cost one load
	mu       sync.Mutex
	refusals []*standingRefusal // the latest last
}

// A standingRefusal is a refusal while it counts.
type standingRefusal struct {
	caller uint64
	until  time.Duration // an instant
	lifted atomic.Bool
}

func (s *standingRefusal) stands() bool { return !s.lifted.Load() && clock.Now() < s.until }

// refused adds a refusal.
func (s *standing) refused(r *Refusal) {
	if r.standing == nil {
		r.standing = newStanding(r.Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refusals) == maxStanding {
		s.refusals = slices.Delete(s.refusals, 0, 1)
	}
	s.refusals = append(s.refusals, r.standing)
	s.some.Store(true)
}

// newStanding returns the refusal that an error of a call is. It counts for as long as its client
// is told to wait, in whole seconds.
func newStanding(err error) *standingRefusal {
	s := &standingRefusal{until: Never}
	switch err := err.(type) {
	case *LimitedError:
		s.caller = err.caller
		if err.RetryAfter < MaxWindow {
			s.until = clock.Now() + (err.RetryAfter + time.Second - 1).Truncate(time.Second)
		}
	case decide.Unavailable:
		s.caller, s.until = err.Caller, clock.Now()+undecidedStands
	}
	return s
}

// admitted lifts the refusals of the callers whose calls were admitted.
func (s *standing) admitted(charges []decide.Charge) {
	if !s.some.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range charges {
		caller := callerOf(charges[i].Key)
		s.refusals = slices.DeleteFunc(s.refusals, func(r *standingRefusal) bool {
			if r.caller == caller {
				r.lifted.Store(true)
			}
			return r.caller == caller
		})
	}
}

var callerSeed = maphash.MakeSeed()

// callerOf returns a number for the key of a rule, which is above 0 and tells nothing else. Of two keys
// it is the same once in 2^64 times.
func callerOf(key []byte) uint64 { return max(1, maphash.Bytes(callerSeed, key)) }
