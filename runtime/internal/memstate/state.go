package memstate

import "github.com/rategen/rategen/internal/algorithm"

// A state is everything that is kept of a key: the counterpart of a key in
// Redis. All kinds of state have this one type and give its fields a meaning of
// their own, so that a state stands next to its key and not elsewhere on the
// heap. Times are in microseconds. The zero state is that of a key without
// charges.
type state struct {
	dropTime int64 // when Redis drops the key, without the rounding of dies; 0: nothing is kept
	time     int64
	bound    int64
	count    int64
	list     []int64
	extra    *entryExtra // nil for most
	kind     kind

	size uint8 // of the key next to the state
}

// empty is the state of a key that is not there. It is never written.
var empty state

// A view is what a charge finds in a state.
type view struct {
	// room is how much could be charged now. It is below 0 if max was lowered.
	room int64
	// retry is the time until the charge fits, and 0 if it does.
	retry int64
	// more is the time until there is room for one more, of a charge that leaves nothing.
	more int64
	// reset is the time until the limit is whole again.
	reset int64

	// time is the time of the charge.
	time int64
	// delay is how long the caller must wait for its turn once it is charged.
	delay int64
	// blocked says that a block refuses the charge, and behind that its tenant has used less than others.
	blocked, behind bool

	// mark is the mark of the charge, of a bucket.
	mark int64

	bound, end, count int64 // each kind has a meaning of its own for these
	level             float64

	before, others int64 // of permits: what processes ahead in line ask for, and how many others wait

	gaps  []int64 // of a queue, see bucket.lua
	gap   int     // the one that the charge fits in
	early int64   // where that begins, or 0
}

// setKind reports whether the state is of the algorithm's kind. An empty state changes to that
// kind.
func (s *state) setKind(a algorithm.Algorithm) bool {
	kind := kinds[a]
	if s.kind != kind && s.dropTime == 0 {
		s.kind, s.list = kind, nil
	}
	return s.kind == kind
}

// heal keeps a key to which nothing is charged until the limit is whole again. The key would
// be dropped before if a shorter window had charged it. See take.lua.
func (s *state) heal(clock, window int64, v *view) {
	if v.reset > 0 {
		s.extendExpiry(clock, window, clock+v.reset)
	}
}

// isAhead reports whether the state's time is more than a window ahead of the clock, which must
// have stepped back. Such a state no longer counts, as if Redis had lost the key: otherwise
// its events would stay for as long as the clock has stepped back.
func (s *state) isAhead(clock, window int64) bool {
	switch s.kind {
	case logKind:
		return (*log)(s).newest() > clock+window
	case permitKind:
		return false // each lapses by itself
	}
	return s.time > clock+window
}

// forgotten reports whether Redis would have dropped the key by now.
func (s *state) forgotten(clock int64) bool {
	return s.dropTime <= clock && s.expiry() <= clock/1000 // the first is quicker to find out
}

// expiry returns when Redis drops the key, in milliseconds: rounded up and 100 of
// them later than needed. See lifetime in prelude.lua.
func (s *state) expiry() int64 { return (s.dropTime+999)/1000 + 100 }

// clear forgets everything. A short list keeps its memory, so that a caller who
// comes back after the window costs no allocation.
func (s *state) clear() {
	const spare = 128
	list := s.list[:0]
	if cap(list) > spare {
		list = nil
	}
	*s = state{list: list, extra: s.extra, kind: s.kind, size: s.size}
}

// expirySlack returns for how many microseconds longer than needed Redis may keep a
// key that a window charged. See lifetime in prelude.lua.
func expirySlack(window int64) int64 {
	return min(max((window+3)/4, min(window, 100_000)), 800_000)
}
