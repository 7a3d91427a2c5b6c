package plan

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

const (
	minPlans = 64
	maxPlans = 4096
	// places is in how many slots a plan may be.
	places = 4
	// stays is for how long a plan stays while there are too many.
	stays = time.Second
)

// A Table holds plans. Finding one takes no lock. In a full table a new plan takes
// the place of an old one, but not so often that it matters what a plan costs: a
// program may have any number of rules and maxima. The zero Table is empty.
type Table struct {
	slots atomic.Pointer[[]slot] // their number is a power of two
	mu    sync.Mutex             // held to write
}

type slot = atomic.Pointer[Plan]

// Hash returns a hash of which the low bits differ for most rules and maxima. It is
// good enough for a table that may forget a plan, and takes a tenth of the time.
func (k Key) Hash() uint64 {
	const golden = 0x9E3779B97F4A7C15 // see Knuth, The Art of Computer Programming 3, 6.4
	return (uint64(uintptr(k.Rule)) + uint64(k.Max)<<32) * golden >> 40
}

// Find returns the plan of a key, of which it is told the hash, or nil.
func (t *Table) Find(k Key, hash uint64) *Plan {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	for i := range uint64(places) {
		if p := place(*slots, hash, i).Load(); p == nil || p.Key == k {
			return p
		}
	}
	return nil
}

// place returns the ith slot of a hash.
func place(slots []slot, hash, i uint64) *slot {
	return &slots[(hash+i)&uint64(len(slots)-1)]
}

// Add adds a plan that Find did not find, unless there is no place for it now.
func (t *Table) Add(p *Plan) {
	if !t.mu.TryLock() {
		return // in a moment
	}
	defer t.mu.Unlock()
	if t.Find(p.Key, p.Key.Hash()) != nil {
		return
	}
	if t.slots.Load() == nil {
		t.grow(minPlans)
	}
	p.made = clock.Now()
	slot := t.place(p.Key.Hash(), p.made)
	for slot == nil && len(*t.slots.Load()) < maxPlans {
		t.grow(2 * len(*t.slots.Load()))
		slot = t.place(p.Key.Hash(), p.made)
	}
	if slot != nil {
		slot.Store(p)
	}
}

// Clear forgets all plans. Rules that are no longer in force are then let go.
func (t *Table) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots.Store(nil)
}

// place returns the slot that a plan may have: a free one, or in a full table that of
// the oldest plan, if it has stayed for long enough.
func (t *Table) place(hash uint64, now time.Duration) (oldest *slot) {
	slots, made := *t.slots.Load(), now-stays
	for i := range uint64(places) {
		slot := place(slots, hash, i)
		p := slot.Load()
		if p == nil {
			return slot
		}
		if len(slots) == maxPlans && p.made <= made {
			oldest, made = slot, p.made
		}
	}
	return oldest
}

// grow replaces the slots by more.
func (t *Table) grow(size int) {
	old := t.slots.Load()
	slots := make([]slot, size)
	t.slots.Store(&slots)
	if old == nil {
		return
	}
	for i := range *old {
		if p := (*old)[i].Load(); p != nil {
			if slot := t.place(p.Key.Hash(), p.made); slot != nil {
				slot.Store(p) // else it is made again
			}
		}
	}
}
