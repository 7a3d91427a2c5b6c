package plan

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

const (
	minPlans    = 64
	maxPlans    = 4096
	slotChoices = 4           // in how many slots a plan may be
	minStay     = time.Second // for how long a plan stays in a full table
)

// A Table holds plans. Finding one takes no lock. In a full table a new plan takes
// the place of an old one, but not so often that it matters what a plan costs: a
// program may have any number of rules and maxima. The zero Table is empty.
type Table struct {
	slots atomic.Pointer[[]slot] // their number is a power of two
	mu    sync.Mutex             // held to write
}

type slot = atomic.Pointer[Plan]

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
	p.createTime = clock.Now()
	slot := t.place(p.Key.Hash(), p.createTime)
	for slot == nil && len(*t.slots.Load()) < maxPlans {
		t.grow(2 * len(*t.slots.Load()))
		slot = t.place(p.Key.Hash(), p.createTime)
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
	slots, made := *t.slots.Load(), now-minStay
	for i := range uint64(slotChoices) {
		slot := slotAt(slots, hash, i)
		p := slot.Load()
		if p == nil {
			return slot
		}
		if len(slots) == maxPlans && p.createTime <= made {
			oldest, made = slot, p.createTime
		}
	}
	return oldest
}

func (t *Table) grow(size int) {
	old := t.slots.Load()
	slots := make([]slot, size)
	t.slots.Store(&slots)
	if old == nil {
		return
	}
	for i := range *old {
		if p := (*old)[i].Load(); p != nil {
			if slot := t.place(p.Key.Hash(), p.createTime); slot != nil {
				slot.Store(p) // else it is made again
			}
		}
	}
}
