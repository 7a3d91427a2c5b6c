package runtime

// A memoryTable maps keys to their states: an open hash table with linear
// probing, by hashes that its user has computed already. Its slots are small, so
// that those of a hundred thousand keys are in a processor's cache, and a key
// stands next to its state. A look-up so waits for memory once, where one in a
// map of Go does three times; with many keys that is most of a call's time.
// (Knuth, The Art of Computer Programming 3, 6.4, algorithms L and R.)
type memoryTable struct {
	slots []memorySlot // their number is a power of two, or 0
	count int          // keys; at most 7 of 8 slots
	hand  int          // where the next sweep begins
}

type memorySlot struct {
	hash  uint64
	entry *memoryEntry // nil: the slot is free
}

// A memoryEntry is a key and its state.
type memoryEntry struct {
	memoryState
	long  *string // a key that does not fit bytes, or nil
	bytes [shortKey]byte
}

// shortKey is the longest key in bytes that stands next to its state. The
// default prefix of most methods and a UUID fit.
const shortKey = 88

// find returns the slot of a key, or -1.
func (t *memoryTable) find(hash uint64, key []byte) int {
	if t.count == 0 {
		return -1
	}
	for i := t.home(hash); ; i = t.next(i) {
		slot := &t.slots[i]
		if slot.entry == nil {
			return -1
		}
		if slot.hash == hash && slot.entry.is(key) {
			return i
		}
	}
}

// home returns where the key of a hash stands if that slot is free. The lowest
// bits have chosen the shard.
func (t *memoryTable) home(hash uint64) int {
	return int(hash/memoryShards) & (len(t.slots) - 1)
}

func (t *memoryTable) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

// add adds a key that is not there yet.
func (t *memoryTable) add(hash uint64, key []byte) *memoryEntry {
	if 8*(t.count+1) > 7*len(t.slots) {
		old := t.slots
		t.slots = make([]memorySlot, max(8, 2*len(old)))
		for i := range old {
			if old[i].entry != nil {
				t.put(old[i])
			}
		}
	}
	e := newMemoryEntry(key)
	t.put(memorySlot{hash, e})
	t.count++
	return e
}

func (t *memoryTable) put(slot memorySlot) {
	i := t.home(slot.hash)
	for t.slots[i].entry != nil {
		i = t.next(i)
	}
	t.slots[i] = slot
}

// remove frees a slot, and moves those back that stand behind it for want of
// their own.
func (t *memoryTable) remove(free int) {
	for i := t.next(free); t.slots[i].entry != nil; i = t.next(i) {
		// It may move if the free slot lies between its home and itself.
		distance := (i - t.home(t.slots[i].hash)) & (len(t.slots) - 1)
		if distance >= (i-free)&(len(t.slots)-1) {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = memorySlot{}
	t.count--
}

func newMemoryEntry(key []byte) *memoryEntry {
	e := new(memoryEntry)
	if len(key) > shortKey {
		e.long = new(string(key))
	} else {
		e.size = uint8(copy(e.bytes[:], key))
	}
	return e
}

// is reports whether a key is the entry's.
func (e *memoryEntry) is(key []byte) bool {
	if e.long != nil {
		return *e.long == string(key)
	}
	return string(e.bytes[:e.size]) == string(key)
}
