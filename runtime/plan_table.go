package runtime

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	minPlans = 64
	maxPlans = 4096
	// planPlaces is in how many slots a plan may be.
	planPlaces = 4
	// planStays is for how long a plan stays while there are too many.
	planStays = time.Second
)

// A planTable holds plans. Finding one takes no lock. In a full table a new plan takes
// the place of an old one, but not so often that it matters what a plan costs: a
// program may have any number of rules and maxima.
type planTable struct {
	slots atomic.Pointer[[]planSlot] // their number is a power of two
	mu    sync.Mutex                 // held to write
}

type planSlot = atomic.Pointer[plan]

// A planKey is what a plan is found by.
type planKey struct {
	rule *Rule
	max  int64
}

// hash returns a hash of which the low bits differ for most rules and maxima. It is
// good enough for a table that may forget a plan, and takes a tenth of the time.
func (k planKey) hash() uint64 {
	const golden = 0x9E3779B97F4A7C15 // see Knuth, The Art of Computer Programming 3, 6.4
	return (uint64(uintptr(unsafe.Pointer(k.rule))) + uint64(k.max)<<32) * golden >> 40
}

// find returns a plan, or nil.
func (t *planTable) find(k planKey, hash uint64) *plan {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	for i := range uint64(planPlaces) {
		if p := planPlace(*slots, hash, i).Load(); p == nil || p.planKey == k {
			return p
		}
	}
	return nil
}

// planPlace returns the ith slot of a hash.
func planPlace(slots []planSlot, hash, i uint64) *planSlot {
	return &slots[(hash+i)&uint64(len(slots)-1)]
}

// add returns the plan that there is, or else adds the one that work returns. It
// returns nil if there is no place for it now.
func (t *planTable) add(k planKey, hash uint64, work func() *plan) *plan {
	if !t.mu.TryLock() {
		return nil // in a moment
	}
	defer t.mu.Unlock()
	if p := t.find(k, hash); p != nil {
		return p
	}
	if t.slots.Load() == nil {
		t.grow(minPlans)
	}
	now := instant()
	place := t.place(hash, now)
	for place == nil && len(*t.slots.Load()) < maxPlans {
		t.grow(2 * len(*t.slots.Load()))
		place = t.place(hash, now)
	}
	if place == nil {
		return nil
	}
	p := work()
	p.made = now
	place.Store(p)
	return p
}

// clear forgets all plans. Rules that are no longer in force are then let go.
func (t *planTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots.Store(nil)
}

// place returns the slot that a plan may have: a free one, or in a full table that of
// the oldest plan, if it has stayed for long enough.
func (t *planTable) place(hash uint64, now time.Duration) (oldest *planSlot) {
	slots, made := *t.slots.Load(), now-planStays
	for i := range uint64(planPlaces) {
		slot := planPlace(slots, hash, i)
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
func (t *planTable) grow(size int) {
	old := t.slots.Load()
	slots := make([]planSlot, size)
	t.slots.Store(&slots)
	if old == nil {
		return
	}
	for i := range *old {
		if p := (*old)[i].Load(); p != nil {
			if slot := t.place(p.hash(), p.made); slot != nil {
				slot.Store(p) // else it is made again
			}
		}
	}
}
