package runtime

import "sync"

// A memoryShard is a part of the keys behind a lock of its own.
type memoryShard struct {
	mu   sync.Mutex
	keys memoryTable
	_    [64]byte // others do not wait for the lines of memory that it is in
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
	// keep makes that a later time.
	keep(until int64)
}

// look and charge call the state's method. They name the types, so that the
// compiler sees that a charge need not outlive the call and may be on its
// caller's stack.
func look(s memoryState, clock int64, c *Charge) (room, retry, reset int64) {
	switch s := s.(type) {
	case *memoryLog:
		return s.look(clock, c)
	case *memoryCounter:
		return s.look(clock, c)
	case *memoryWindow:
		return s.look(clock, c)
	default:
		return s.(*memoryBucket).look(clock, c)
	}
}

func charge(s memoryState, clock int64, c *Charge) (at, reset, delay int64) {
	switch s := s.(type) {
	case *memoryLog:
		return s.charge(clock, c)
	case *memoryCounter:
		return s.charge(clock, c)
	case *memoryWindow:
		return s.charge(clock, c)
	default:
		return s.(*memoryBucket).charge(clock, c)
	}
}

// forgotten reports whether Redis would have dropped the key by now. It counts
// that in milliseconds, and keeps a key for 100 of them longer than needed; see
// lifetime in prelude.lua.
func forgotten(state memoryState, clock int64) bool { return dies(state) <= clock/1000 }

// dies returns when Redis would drop the key, in milliseconds.
func dies(state memoryState) int64 { return (state.until()+999)/1000 + 100 }

// slack returns for how many microseconds longer than need be Redis may keep a
// key of the rule; see lifetime in prelude.lua.
func slack(r *Rule) int64 { return min((r.Window.Microseconds()+3)/4, 800_000) }

// find returns the state of a key, or nil if there is none. What Redis would
// have dropped by now is dropped, so that a clock that steps back does not bring
// it back, and returned for its memory.
func (s *memoryShard) find(hash uint64, key []byte, clock int64) (state memoryState, dropped memorySlot) {
	i := s.keys.find(hash, key)
	if i < 0 {
		return nil, memorySlot{}
	}
	slot := s.keys.slots[i]
	if !forgotten(slot.state, clock) {
		return slot.state, memorySlot{}
	}
	s.keys.remove(i)
	return nil, slot
}

// add sets the state of a new key, and makes room for it.
func (s *memoryShard) add(hash uint64, key string, state memoryState, clock int64, limit int) {
	s.evict(clock, limit)
	s.keys.add(hash, key, state)
}

// reset forgets a key.
func (s *memoryShard) reset(hash uint64, key []byte) {
	if i := s.keys.find(hash, key); i >= 0 {
		s.keys.remove(i)
	}
}

// evict makes room for one more key. It looks at a few, drops those that mean
// nothing any more, and, if the shard is full all the same, the one that is the
// soonest to. Every new key pays for it, so that dead keys go as fast as new
// ones come.
func (s *memoryShard) evict(clock int64, limit int) {
	const sample = 5
	t := &s.keys
	if t.count < min(limit, 2*sample) {
		return
	}
	victim, soonest := -1, int64(0)
	i := t.hand & (len(t.slots) - 1)
	for seen, steps := 0, 0; seen < sample; steps++ {
		if steps >= 8*sample && (victim >= 0 || t.count < limit) {
			break // the keys are far between
		}
		state := t.slots[i].state
		if state == nil {
			i = t.next(i)
			continue
		}
		if seen++; forgotten(state, clock) {
			t.remove(i) // and another may have moved here
			continue
		}
		if until := state.until(); victim < 0 || until < soonest {
			victim, soonest = i, until
		}
		i = t.next(i)
	}
	t.hand = i
	if t.count >= limit { // so none was removed, and the victim is where it was
		t.remove(victim)
	}
}

// newMemoryState returns the state of a key that nothing is charged to. It uses
// a little of the memory of one that was dropped, which may be nil: a caller
// that comes back after its window costs none anew.
func newMemoryState(r *Rule, dropped memoryState) memoryState {
	const kept = 64
	if dropped != nil && dropped.of(r) {
		switch s := dropped.(type) {
		case *memoryLog:
			ring := s.ring
			if *s = (memoryLog{}); len(ring) <= kept {
				s.ring = ring
			}
		case *memoryCounter:
			buckets := s.buckets
			if *s = (memoryCounter{}); cap(buckets) <= kept {
				s.buckets = buckets[:0]
			}
		case *memoryWindow:
			*s = memoryWindow{}
		case *memoryBucket:
			*s = memoryBucket{}
		}
		return dropped
	}
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
