package runtime

import "sync"

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

// add sets the state of a new key, and makes room for it.
func (s *memoryShard) add(key []byte, state memoryState, clock int64, limit int) {
	if s.keys == nil {
		s.keys = make(map[string]memoryState)
	}
	s.evict(clock, limit)
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
