package memstate

import (
	"sync"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A shard is a part of the keys behind a lock of its own.
type shard struct {
	mu    sync.Mutex
	keys  table
	flags terms.FlagIssuer
	_     [64]byte // keeps the cache lines of two shards apart
}

// look fills in the view and the result of a charge that is not made. It returns
// the entry of the key, nil if there is none, and false if the entry holds the
// state of another kind.
func (s *shard) look(clock int64, hash uint64, c *terms.Charge, v *view) (*entry, bool) {
	c.Terms.SetClock(clock)
	e := s.find(hash, c.Key, clock)
	state := &empty
	if e != nil {
		if !e.setKind(c.Algorithm) {
			return nil, false
		}
		if !e.isAhead(clock, c.Window) {
			state = &e.state
		}
	}
	state.run(lookStep, clock, c, v)
	if c.Cost == 0 {
		v.retry = 0 // however little room there is
	}
	v.blocked = false
	if c.Blocks() && state != &empty {
		e.applyBlock(clock, c, v)
	}
	v.fillResult(&c.Result)
	return e, true
}

// fillResult fills in the result of a charge that is not made.
func (v *view) fillResult(r *terms.Result) {
	r.Allowed = v.retry == 0
	r.Remaining = max(0, v.room)
	r.RetryAfter, r.ResetAfter = terms.Micros(v.retry), terms.Micros(v.reset)
	r.MoreAfter, r.Delay, r.At, r.Mark, r.Recalled, r.Blocked, r.Behind = 0, 0, 0, 0, false, v.blocked, v.behind
}

// prepare returns the entry of a key that is about to change, without a state that no longer
// counts. A key without an entry gets one, for which another key may have to go.
func (s *shard) prepare(clock int64, hash uint64, c *terms.Charge, e *entry, m *Map) *entry {
	if e == nil {
		s.evict(clock, m)
		e = s.keys.add(hash, c.Key)
		e.setKind(c.Algorithm)
	}
	if e.isAhead(clock, c.Window) {
		e.clear()
	}
	return e
}

// charge makes a charge that has just been found to fit.
func (s *shard) charge(clock int64, hash uint64, c *terms.Charge, v *view, e *entry, m *Map) reachedShares {
	e = s.prepare(clock, hash, c, e, m)
	at := v.time
	v.more = 0
	p := e.write(chargeStep, clock, c, v)
	if c.Blocks() {
		e.endBlock(clock, at, c)
	}
	c.Remaining = max(0, c.Remaining-c.Cost) // The rounding of a bucket's level may have hidden one.
	c.At, c.Mark, c.MoreAfter, c.ResetAfter, c.Delay = v.time, v.mark, terms.Micros(v.more), terms.Micros(v.reset),
		terms.Micros(v.delay)
	return p
}

// settleReserved settles a reservation. It returns false if the key holds the state of
// another kind.
func (s *shard) settleReserved(clock int64, hash uint64, c *terms.Charge, m *Map) (p reachedShares, ok bool) {
	c.Terms.SetClock(clock)
	e := s.find(hash, c.Key, clock)
	nothing := e == nil || e.isAhead(clock, c.Window)
	if e != nil && !e.setKind(c.Algorithm) {
		return p, false
	}
	if nothing && lostCharge(c) == 0 {
		return p, true
	}
	return s.prepare(clock, hash, c, e, m).write(settleStep, clock, c, nil), true
}

// find returns the entry of a key, or nil if there is none. It clears a state
// that Redis would have dropped by now, so that a clock that steps back does not
// bring it back.
func (s *shard) find(hash uint64, key []byte, clock int64) *entry {
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

// evict makes room for one more key. It looks at a few keys and drops those that
// are forgotten. If the shard is full all the same, it drops the one of them
// that will be forgotten first, and looks at more where all of them are blocked.
// Every new key pays for this, so that forgotten keys go as fast as new ones come.
func (s *shard) evict(clock int64, m *Map) {
	const sample, most = 5, 128
	t := &s.keys
	if t.count < min(m.max, 2*sample) {
		return
	}
	victim, soonest, blocked := -1, int64(0), false
	i := t.cursor & (len(t.slots) - 1)
	for seen, steps := 0, 0; seen < sample || seen < most && blocked && t.count >= m.max; steps++ {
		if steps >= max(8*sample, len(t.slots)) && (victim >= 0 || t.count < m.max) ||
			steps >= 8*sample && victim >= 0 && !blocked {
			break // The keys are far between, or all were seen.
		}
		e := t.slots[i].entry
		if e == nil {
			i = t.next(i)
			continue
		}
		seen++
		if e.forgotten(clock) {
			t.remove(i) // Another key may have moved here.
			continue
		}
		if is := e.blockEnd() > clock; victim < 0 || blocked && !is || blocked == is && e.dropTime < soonest {
			victim, soonest, blocked = i, e.dropTime, is
		}
		i = t.next(i)
	}
	t.cursor = i
	if t.count >= m.max { // None was removed, so the victim is where it was.
		t.remove(victim)
		m.noteLoss(blocked)
	}
}
