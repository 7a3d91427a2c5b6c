package runtime

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	denialShards = 64
	// denialsAShard bounds the memory that callers over their limits can take:
	// 65,536 keys in all.
	denialsAShard = 1024
	// denialsASet is how many keys of the same hash bits there may be. Pointers
	// to them fill one line of memory.
	denialsASet = 8
)

// A denialTable finds denials by their keys. To find one takes no lock, since a
// flood of denied calls is what it is for: slots point to denials that never
// change. To change a slot takes a lock, and Redis was asked just before.
type denialTable struct {
	seed   maphash.Seed
	used   atomic.Bool // something was added once
	shards [denialShards]denialShard
}

type denialShard struct {
	slots   atomic.Pointer[[]denialSlot] // their number is a power of two
	mu      sync.Mutex                   // held to write
	cleared time.Duration                // when a key was last forgotten on purpose
	_       [40]byte
}

type denialSlot = atomic.Pointer[denial]

// find returns the denial of a key, or nil.
func (t *denialTable) find(key []byte) *denial {
	hash := maphash.Bytes(t.seed, key)
	slots := t.shards[hash%denialShards].slots.Load()
	if slots == nil {
		return nil
	}
	for i := range uint64(denialsASet) {
		n := (*slots)[slotOf(hash, i, len(*slots))].Load()
		if n != nil && n.hash == hash && n.key == string(key) {
			return n
		}
	}
	return nil
}

// slotOf returns the place that a hash tries as its i-th. All it tries are in
// one set, from one on that other hashes begin with more rarely than not.
func slotOf(hash, i uint64, slots int) int {
	set, first := hash/denialShards/denialsASet, hash/denialShards
	return int(set*denialsASet+(first+i)%denialsASet) & (slots - 1)
}

// add puts a denial that was asked for at a time in the place of another one of
// its key, of one that is not believed any more, or of the soonest not to be. It
// does nothing if a key of the shard was forgotten since.
func (t *denialTable) add(n *denial, asked time.Duration) {
	n.hash = maphash.String(t.seed, n.key)
	shard := &t.shards[n.hash%denialShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if asked <= shard.cleared {
		return
	}
	for {
		slots := shard.slots.Load()
		if slots == nil {
			shard.grow(denialsASet)
			continue
		}
		victim := shard.victim(*slots, n, asked)
		if old := victim.Load(); old != nil && old.until > asked && old.key != n.key && len(*slots) < denialsAShard {
			shard.grow(2 * len(*slots))
			continue
		}
		victim.Store(n)
		if !t.used.Load() {
			t.used.Store(true)
		}
		return
	}
}

// victim returns the slot that a denial may have: its key's, or else that of the
// denial that is the soonest not to be believed.
func (s *denialShard) victim(slots []denialSlot, n *denial, now time.Duration) *denialSlot {
	var victim *denialSlot
	soonest := time.Duration(0)
	for i := range uint64(denialsASet) {
		slot := &slots[slotOf(n.hash, i, len(slots))]
		until, old := now, slot.Load()
		if old != nil {
			if old.hash == n.hash && old.key == n.key {
				return slot
			}
			until = max(now, old.until)
		}
		if victim == nil || until < soonest {
			victim, soonest = slot, until
		}
	}
	return victim
}

// grow replaces the slots by more.
func (s *denialShard) grow(size int) {
	slots := make([]denialSlot, size)
	if old := s.slots.Load(); old != nil {
		for i := range *old {
			if n := (*old)[i].Load(); n != nil {
				s.victim(slots, n, 0).Store(n) // its set holds no more than it did
			}
		}
	}
	s.slots.Store(&slots)
}

// drop drops a denial, if it has not been replaced.
func (t *denialTable) drop(n *denial) {
	shard := &t.shards[n.hash%denialShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	slots := *shard.slots.Load()
	for i := range uint64(denialsASet) {
		slots[slotOf(n.hash, i, len(slots))].CompareAndSwap(n, nil)
	}
}

// forget drops what is known of a key, and keeps what was asked before now from
// being added.
func (t *denialTable) forget(key []byte, now time.Duration) {
	hash := maphash.Bytes(t.seed, key)
	shard := &t.shards[hash%denialShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.cleared = now
	slots := shard.slots.Load()
	if slots == nil {
		return
	}
	for i := range uint64(denialsASet) {
		slot := &(*slots)[slotOf(hash, i, len(*slots))]
		if n := slot.Load(); n != nil && n.hash == hash && n.key == string(key) {
			slot.Store(nil)
		}
	}
}
