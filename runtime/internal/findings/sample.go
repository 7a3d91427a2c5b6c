package findings

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	// enough is how many calls of a rule must show one thing before it is told.
	enough = 1_000
	// running is how many calls that are charged may be under way, and be given back later.
	running = 256
	// mostCalls are looked at, unless something is told by then.
	mostCalls = 100_000
	// mostCallers is for how many calls of a rule the limiter looks at the stack: so many may
	// begin at once when a program starts, before one of them reaches a second wrapper.
	mostCallers = 64
)

// A Sample is what the first calls of a rule show of whether it counts anybody. It is safe for
// concurrent use.
type Sample struct {
	// Done says that there is nothing more to learn of decided calls. Then they cost one load.
	Done atomic.Bool
	// Calls is how many there were of each outcome, as far as they are counted.
	Calls [4]atomic.Int64
	// Met says that there was a call, whoever decided it.
	Met atomic.Bool

	key                atomic.Pointer[[]byte] // of the first call
	began              atomic.Int64           // an instant
	charged, alone     atomic.Int64           // calls, and those in the window that began
	free, returned     atomic.Int64           // calls
	shared, kept, told atomic.Bool
	callers            atomic.Int64
	outer, inner       atomic.Bool // calls came by themselves, or out of a wrapper
}

// AsksCaller reports whether the next call is to say by whom it was made.
func (s *Sample) AsksCaller() bool {
	return s.callers.Load() < mostCallers && s.callers.Add(1) <= mostCallers
}

// Call notes whether the wrapper that made a call was called by one of its kind. It reports
// whether the call is the one that shows that a limiter has both: one within the other.
func (s *Sample) Call(within bool) (twice bool) {
	if !within {
		s.outer.Store(true)
		return false
	}
	return s.outer.Load() && !s.inner.Swap(true)
}

// Key returns the key of a call, or nil before the first.
func (s *Sample) Key() []byte {
	if key := s.key.Load(); key != nil {
		return *key
	}
	return nil
}

// Refuse notes that a call with a key was refused: so the rule counts.
func (s *Sample) Refuse(key []byte) {
	s.note(key)
	s.shared.Store(true)
	s.kept.Store(true)
	s.Done.Store(true)
}

// Charge notes the key of a call that was charged at an instant, for how long the charge counts,
// and whether it is alone: nothing else counts for the key. It reports whether the call is the one
// that shows that each has a key of its own.
func (s *Sample) Charge(key []byte, now, counts time.Duration, alone bool) (distinct bool) {
	s.note(key)
	charged := s.charged.Add(1)
	if charged-s.returned.Load() > running {
		s.kept.Store(true)
	}
	began := s.began.Load()
	switch {
	case !alone:
		s.shared.Store(true)
	case s.returned.Load() > 0: // the key may have had another call
	case began == 0 || now-time.Duration(began) > counts:
		s.began.Store(int64(now))
		s.alone.Store(1)
	default:
		distinct = s.alone.Add(1) == enough && !s.told.Swap(true)
	}
	if s.shared.Load() && s.kept.Load() || charged > mostCalls && !s.told.Load() {
		s.Done.Store(true)
	}
	return distinct
}

// note keeps the first key.
func (s *Sample) note(key []byte) {
	if s.key.Load() == nil {
		s.key.Store(new(slices.Clone(key)))
	}
}

// Shared reports whether two calls had one key.
func (s *Sample) Shared() bool { return s.shared.Load() }

// Charged reports whether a call has cost anything.
func (s *Sample) Charged() bool { return s.charged.Load() > 0 }

// Kept reports whether a call was not given back.
func (s *Sample) Kept() bool { return s.kept.Load() }

// Free notes a call that costs nothing, and reports whether it is the one that shows that all do.
func (s *Sample) Free() bool {
	return !s.Charged() && s.free.Add(1) == enough
}

// Return notes a call that was given back whole, and reports whether it is the one that shows
// that all are.
func (s *Sample) Return() bool {
	return !s.Kept() && s.returned.Add(1) == enough
}
