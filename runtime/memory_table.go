package runtime

// A memoryTable maps keys to their states: an open hash table with linear
// probing, by hashes that its user has computed already. A look-up reads two or
// three lines of memory, where a map of Go would hash the key again and read
// more of them; with many keys these are most of a call's time.
// (Knuth, The Art of Computer Programming 3, 6.4, algorithms L and R.)
type memoryTable struct {
	slots []memorySlot // their number is a power of two, or 0
	count int          // keys; at most half of the slots
	hand  int          // where the next sweep begins
}

type memorySlot struct {
	hash  uint64
	key   string
	state memoryState // nil: the slot is free
}

// find returns the place of a key, or -1.
func (t *memoryTable) find(hash uint64, key []byte) int {
	if t.count == 0 {
		return -1
	}
	for i := t.home(hash); ; i = t.next(i) {
		slot := &t.slots[i]
		if slot.state == nil {
			return -1
		}
		if slot.hash == hash && slot.key == string(key) {
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
func (t *memoryTable) add(hash uint64, key string, state memoryState) {
	if 2*(t.count+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]memorySlot, max(8, 2*len(old)))
		for i := range old {
			if old[i].state != nil {
				t.put(old[i])
			}
		}
	}
	t.put(memorySlot{hash, key, state})
	t.count++
}

func (t *memoryTable) put(slot memorySlot) {
	i := t.home(slot.hash)
	for t.slots[i].state != nil {
		i = t.next(i)
	}
	t.slots[i] = slot
}

// remove frees a slot, and moves those back that stand behind it for want of
// their own.
func (t *memoryTable) remove(free int) {
	for i := t.next(free); t.slots[i].state != nil; i = t.next(i) {
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
