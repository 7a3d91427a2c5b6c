package memstate

import "github.com/rategen/rategen/runtime/internal/terms"

// A table maps keys to their states. It is an open hash table with linear
// probing, by hashes that its user has already computed (Knuth, The Art of
// Computer Programming 3, 6.4, algorithms L and R).
//
// Its slots are small, so that those of a hundred thousand keys fit a
// processor's cache, and a key stands next to its state. A look-up so waits for
// main memory once, and one in a map of Go three times. With many keys that is
// most of the time of a decision.
type table struct {
	slots  []slot // their number is a power of two, or 0
	count  int    // keys; at most 7 of 8 slots
	cursor int    // where the next sweep begins
}

// A slot is a place for a key. Without an entry it is free.
type slot struct {
	hash  uint64
	entry *entry
}

// An entry is a key and its state.
type entry struct {
	state
	bytes [shortKey]byte
}

// An entryExtra is what few entries have.
type entryExtra struct {
	key       string // that does not fit bytes, or empty
	blockEnd  int64  // when a block ends, or 0
	past      *terms.Past
	toldShare float64      // the highest share of the period that was told, see [terms.Terms.Passed]
	entry     *terms.Entry // of a ledger, or nil
	tenants   *tenants
}

// shortKey is the longest key in bytes that stands next to its state. The
// default prefix of most methods and a UUID fit.
const shortKey = 88

// find returns the slot of a key, or -1.
func (t *table) find(hash uint64, key []byte) int {
	if t.count == 0 {
		return -1
	}
	for i := t.home(hash); ; i = t.next(i) {
		slot := &t.slots[i]
		if slot.entry == nil {
			return -1
		}
		if slot.hash == hash && slot.entry.matches(key) {
			return i
		}
	}
}

// home returns where the key of a hash stands if that slot is free. The lowest
// bits have already chosen the shard.
func (t *table) home(hash uint64) int {
	return int(hash/shardCount) & (len(t.slots) - 1)
}

func (t *table) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

// add adds a key that is not there yet.
func (t *table) add(hash uint64, key []byte) *entry {
	if 8*(t.count+1) > 7*len(t.slots) {
		old := t.slots
		t.slots = make([]slot, max(8, 2*len(old)))
		for i := range old {
			if old[i].entry != nil {
				t.put(old[i])
			}
		}
	}
	e := newEntry(key)
	t.put(slot{hash, e})
	t.count++
	return e
}

func (t *table) put(s slot) {
	i := t.home(s.hash)
	for t.slots[i].entry != nil {
		i = t.next(i)
	}
	t.slots[i] = s
}

// remove frees a slot. It moves back the entries behind it whose way from home
// leads over that slot.
func (t *table) remove(free int) {
	for i := t.next(free); t.slots[i].entry != nil; i = t.next(i) {
		distance := (i - t.home(t.slots[i].hash)) & (len(t.slots) - 1)
		if distance >= (i-free)&(len(t.slots)-1) {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = slot{}
	t.count--
}

func newEntry(key []byte) *entry {
	e := new(entry)
	if len(key) > shortKey {
		e.extra = &entryExtra{key: string(key)}
	} else {
		e.size = uint8(copy(e.bytes[:], key))
	}
	return e
}

// makeExtra returns what few entries have.
func (e *entry) makeExtra() *entryExtra {
	if e.extra == nil {
		e.extra = new(entryExtra)
	}
	return e.extra
}

// makeTenants returns the tenants of the state.
func (s *state) makeTenants() *tenants {
	if s.extra == nil {
		s.extra = new(entryExtra)
	}
	if s.extra.tenants == nil {
		s.extra.tenants = new(tenants)
	}
	return s.extra.tenants
}

// matches reports whether a key is the entry's.
func (e *entry) matches(key []byte) bool {
	if e.extra != nil && e.extra.key != "" {
		return e.extra.key == string(key)
	}
	return string(e.bytes[:e.size]) == string(key)
}
