package runtime

// A memoryState is what a MemoryStore keeps of one key, whatever the algorithm:
// the counterpart of one in package lua, operation by operation. The algorithms
// have this one type, each in its own words, so that states stand next to their
// keys and not on a heap of their own. Times are in microseconds; the clock is
// the store's own and may step back. The zero state is that of a key that
// nothing was charged to.
type memoryState struct {
	kept  int64 // when Redis drops the key, as far as the state says; 0: there is none
	at    int64
	from  int64
	count int64
	list  []int64
	kind  Algorithm // of the state; a LeakyBucket is a TokenBucket

	size uint8 // of the key next to it
}

// A memoryView is what one call finds about a key.
type memoryView struct {
	// room is how much could be charged now, which is below 0 if max was
	// lowered; retry the time until the charge fits, 0 if it does; and reset
	// the time until the limit is whole again.
	room, retry, reset int64

	at                int64 // the time of the charge
	from, stop, count int64
	level             float64
}

func kindOf(r *Rule) Algorithm { return min(r.Algorithm, TokenBucket) }

// look finds out about a charge.
func (s *memoryState) look(clock int64, c *Charge, v *memoryView) {
	switch kindOf(c.Rule) {
	case SlidingLog:
		(*memoryLog)(s).look(clock, c, v)
	case SlidingCounter:
		(*memoryCounter)(s).look(clock, c, v)
	case FixedWindow:
		(*memoryWindow)(s).look(clock, c, v)
	default:
		(*memoryBucket)(s).look(clock, c, v)
	}
}

// charge makes a charge that was just found to fit. It returns the charge's
// time, the time until the limit is whole again, and the time that the caller
// must wait for its turn.
func (s *memoryState) charge(clock int64, c *Charge, v *memoryView) (at, reset, delay int64) {
	switch s.kind {
	case SlidingLog:
		return (*memoryLog)(s).charge(clock, c, v)
	case SlidingCounter:
		return (*memoryCounter)(s).charge(clock, c, v)
	case FixedWindow:
		return (*memoryWindow)(s).charge(clock, c, v)
	default:
		return (*memoryBucket)(s).charge(clock, c, v)
	}
}

// refund takes back up to c.Cost of what was charged at c.At.
func (s *memoryState) refund(clock int64, c *Charge) {
	switch s.kind {
	case SlidingLog:
		(*memoryLog)(s).refund(c)
	case SlidingCounter:
		(*memoryCounter)(s).refund(c)
	case FixedWindow:
		(*memoryWindow)(s).refund(clock, c)
	default:
		(*memoryBucket)(s).refund(clock, c)
	}
}

// heal keeps a key that nothing is charged to from being forgotten too early,
// which it is if it was charged by a shorter window. See take.lua.
func (s *memoryState) heal(clock int64, c *Charge, v *memoryView) {
	if v.reset > 0 && s.dies()*1000-clock < v.reset {
		s.kept = clock + v.reset + slack(c.Rule)
	}
}

// forgotten reports whether Redis would have dropped the key by now. It counts
// that in milliseconds, and keeps a key for 100 of them longer than needed; see
// lifetime in prelude.lua.
func (s *memoryState) forgotten(clock int64) bool { return s.dies() <= clock/1000 }

// dies returns when Redis would drop the key, in milliseconds.
func (s *memoryState) dies() int64 { return (s.kept+999)/1000 + 100 }

// clear forgets all. It leaves a little memory for a caller that comes back
// after its window, whom that costs none anew.
func (s *memoryState) clear() {
	const spare = 128
	kind, list := s.kind, s.list
	if cap(list) > spare {
		list = nil
	} else if kind != SlidingLog { // whose ring has always the same length
		list = list[:0]
	}
	*s = memoryState{kind: kind, list: list, size: s.size}
}

// become makes a state that means nothing one of a rule's algorithm, and reports
// whether the state is of that.
func (s *memoryState) become(r *Rule) bool {
	kind := kindOf(r)
	if s.kind != kind && s.kept == 0 {
		s.kind, s.list = kind, nil
	}
	return s.kind == kind
}

// slack returns for how many microseconds longer than need be Redis may keep a
// key of the rule; see lifetime in prelude.lua.
func slack(r *Rule) int64 {
	window := r.Window.Microseconds()
	return min(max((window+3)/4, min(window, 100_000)), 800_000)
}
