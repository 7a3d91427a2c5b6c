package runtime

import (
	"fmt"
	"sync"
)

// A memoryShard is a part of the keys behind a lock of its own.
type memoryShard struct {
	mu   sync.Mutex
	keys memoryTable
	_    [64]byte // others do not wait for the lines of memory that it is in
}

// find returns the entry of a key, or nil if there is none. What Redis would
// have dropped by now is dropped, so that a clock that steps back does not bring
// it back.
func (s *memoryShard) find(hash uint64, key []byte, clock int64) *memoryEntry {
	i := s.keys.find(hash, key)
	if i < 0 {
		return nil
	}
	e := s.keys.slots[i].entry
	if e.forgotten(clock) {
		e.clear()
	}
	return e
}

// look fills in what is found about a charge. It returns the entry of its key,
// or nil if there is none.
func (s *memoryShard) look(clock int64, hash uint64, key []byte, c *Charge, v *memoryView) (*memoryEntry, error) {
	e := s.find(hash, key, clock)
	if e == nil {
		var none memoryState
		none.look(clock, c, v)
	} else if !e.become(c.Rule) {
		return nil, fmt.Errorf("the key of rule %q holds the state of another algorithm", c.Rule.Name)
	} else {
		e.look(clock, c, v)
	}
	c.Allowed = v.retry == 0
	c.Remaining = max(0, v.room)
	c.RetryAfter, c.ResetAfter = micros(v.retry), micros(v.reset)
	c.Delay, c.At, c.Recalled = 0, 0, false
	return e, nil
}

// charge makes a charge that was just found to fit. Without an entry for its
// key it makes one, for which another may have to go.
func (s *memoryShard) charge(clock int64, hash uint64, key []byte, c *Charge, v *memoryView, e *memoryEntry, limit int) {
	if e == nil {
		s.evict(clock, limit)
		e = s.keys.add(hash, key)
		e.become(c.Rule)
	}
	at, reset, delay := e.charge(clock, c, v)
	c.Remaining = max(0, c.Remaining-c.Cost) // a bucket's level may have hidden one
	c.At, c.ResetAfter, c.Delay = at, micros(reset), micros(delay)
}

// decide is take.lua for one charge.
func (s *memoryShard) decide(clock int64, hash uint64, key []byte, c *Charge, charge bool, limit int) error {
	var v memoryView
	e, err := s.look(clock, hash, key, c, &v)
	switch {
	case err != nil || !charge:
		return err
	case c.Allowed:
		s.charge(clock, hash, key, c, &v, e, limit)
	case e != nil:
		e.heal(clock, c, &v)
	}
	return nil
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
		e := t.slots[i].entry
		if e == nil {
			i = t.next(i)
			continue
		}
		if seen++; e.forgotten(clock) {
			t.remove(i) // and another may have moved here
			continue
		}
		if victim < 0 || e.kept < soonest {
			victim, soonest = i, e.kept
		}
		i = t.next(i)
	}
	t.hand = i
	if t.count >= limit { // so none was removed, and the victim is where it was
		t.remove(victim)
	}
}
