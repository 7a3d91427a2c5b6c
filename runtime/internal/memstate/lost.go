package memstate

// The kinds of keys that a full Map drops although they still count.
const (
	lostCount = 1 << iota
	lostBlock
)

// Bound returns how many keys the Map holds at most.
func (m *Map) Bound() int { return m.max * shardCount }

// noteLoss notes that a key had to go that still meant something, and whether it was blocked. A shard
// is locked: whoever is told may ask the Map.
func (m *Map) noteLoss(blocked bool) {
	kind := uint32(lostCount)
	if blocked {
		kind = lostBlock
	}
	if m.losses.Load()&kind == 0 && m.losses.Or(kind)&kind == 0 {
		m.newLosses.Or(kind)
	}
}

// tellLost tells of what was lost and not told yet.
func (m *Map) tellLost() {
	if m.newLosses.Load() == 0 {
		return
	}
	if lost := m.newLosses.Swap(0); lost != 0 && m.Lost != nil {
		m.Lost(lost&lostBlock != 0)
	}
}
