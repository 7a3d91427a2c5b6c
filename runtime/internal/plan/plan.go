// Package plan holds what a rule means for calls with one max: plain numbers, computed
// once. A [Plan] never changes. When an override, the load or the kill switch changes a
// rule, other plans are in force.
//
// It is handed numbers that were checked. It promises that no package after it has to read
// a rule. It never decides anything.
package plan

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Policy says what becomes of a charge that no store decides. The numbers are those of
// package runtime.
type Policy uint8

const (
	Open   Policy = iota + 1 // it is as if it had room
	Closed                   // its call is refused
	Local                    // this process decides alone
)

// A Key is what a plan is found by.
type Key struct {
	// Rule is the rule with its overrides. Nothing here looks into it.
	Rule unsafe.Pointer
	// Max is that of the calls.
	Max int64
	// Period is that of the calls, or nil if it is the rule's.
	Period *calendar.Period
}

// A Plan is what a rule means for calls with one max.
type Plan struct {
	Key
	terms.Label
	// Declared is the rule without its overrides.
	Declared unsafe.Pointer
	// Numbers are what the rule says about counting.
	Numbers Rule
	// Terms are complete but for the time that a call may wait in a queue.
	Terms terms.Terms
	// Capacity is the highest cost that could ever be admitted.
	Capacity int64
	// Most is the highest cost of a call that a store takes.
	Most int64
	// Err is why no call can be decided, or nil.
	Err error
	// Wait is how long a call may wait for room.
	Wait time.Duration
	// Lease is for how long units that are charged ahead may be used. 0: none are.
	Lease time.Duration
	// Fail is what becomes of charges that no store decides.
	Fail Policy
	// Share is the plan by which this process alone counts. It is never nil.
	Share *Plan
	// Adapts reports that the load scales the max.
	Adapts bool
	// Plain is up to how long the parts of a key may be of a call that is decided on its
	// caller's stack: one that does not wait and is denied if there is no room. It is -1 if
	// there are no such calls.
	Plain int

	// Sample is what calls of the rule show, or nil.
	Sample *findings.Sample

	// Whole is the key of calls without parts.
	Whole []byte

	made time.Duration
}

// Unsatisfiable reports whether no waiting would admit a cost.
func (p *Plan) Unsatisfiable(cost int64) bool { return p.Terms.Max == 0 || cost > p.Capacity }

// RefusesAll reports whether all calls on some key may be refused, whatever they cost: it may
// be blocked or held, or nobody is admitted.
func (p *Plan) RefusesAll() bool {
	return !p.Terms.Shadow && (p.Terms.Max == 0 || p.Terms.Blocks())
}

// Queues reports whether calls wait in a line that they leave evenly spaced.
func (p *Plan) Queues() bool { return p.Terms.Algorithm == terms.Queue }

// KeyIn returns the key of a call whose parts are no longer than Plain. The array may be
// on its caller's stack. It takes half the time of AppendKey.
//
//go:noinline
func (p *Plan) KeyIn(array *[terms.ShortKey]byte, parts []byte) []byte {
	if len(parts) == 0 {
		return p.Whole
	}
	return append(append(append(array[:0], p.Start...), parts...), p.Tag...)
}

// Charge fills in what a store is asked about a call with a key and a cost. The charge
// is new, and set in place: a copy would wait for what was just written.
func (p *Plan) Charge(c *terms.Charge, key []byte, cost int64) {
	c.Terms, c.Label, c.Key, c.Cost = p.Terms, &p.Label, key, cost
}

// Units returns a charge that was made at a time, which is to give back so many of its
// units.
func (p *Plan) Units(key []byte, charged, units, at, mark int64) (c terms.Charge) {
	p.Charge(&c, key, -units)
	c.Charged, c.At, c.Mark = charged, at, mark
	return c
}

// Complete computes the other fields of a plan from its numbers, for one of so many processes
// that share its limit. Its caller has set the fields before Terms, and Fail, Adapts and Err.
func (p *Plan) Complete(replicas int64) *Plan {
	n := &p.Numbers
	p.Share, p.Wait, p.Terms.Shadow, p.Plain = p, n.Wait, n.Shadow, -1
	if n.Way < Ways { // all that a reset needs
		p.Tag, p.Terms.Algorithm, p.Terms.Window = n.Tag(), n.Counted(), n.Window.Microseconds()
	}
	p.Whole = p.AppendKey(nil, nil)
	if p.Err != nil {
		return p
	}
	p.Terms, p.Capacity = n.Terms(p.Max), n.Capacity(p.Max)
	if p.Reached != nil && p.Numbers.Period != nil {
		if p.Terms.Tells = p.Max; p.Adapts {
			p.Terms.Tells = 1
		}
	}
	p.Most = min(p.Capacity, n.MostCost())
	if n.Wait == 0 && !n.Shadow {
		p.Plain = max(-1, terms.ShortKey-len(p.Start)-len(p.Tag))
	}
	if n.Leases(p.Max) {
		p.Lease = n.Lease
	}
	if p.Fail == Local && replicas > 1 {
		share := *p
		if n.Burst > 0 {
			share.Numbers.Burst = max(1, n.Burst/replicas)
		}
		p.Share = share.AtMax(max(1, p.Max/replicas))
	}
	return p
}

// AtMax returns the plan of one process for calls with another max.
func (p *Plan) AtMax(max int64) *Plan {
	q := &Plan{Key: Key{p.Rule, max, p.Period}, Label: p.Label, Declared: p.Declared, Numbers: p.Numbers, Adapts: p.Adapts, Fail: p.Fail, Sample: p.Sample}
	q.Err = q.Numbers.Check(max, 1)
	return q.Complete(1)
}

const (
	minPlans = 64
	maxPlans = 4096
	places   = 4           // in how many slots a plan may be
	stays    = time.Second // for how long a plan stays in a full table
)

// A Table holds plans. Finding one takes no lock. In a full table a new plan takes
// the place of an old one, but not so often that it matters what a plan costs: a
// program may have any number of rules and maxima. The zero Table is empty.
type Table struct {
	slots atomic.Pointer[[]slot] // their number is a power of two
	mu    sync.Mutex             // held to write
}

type slot = atomic.Pointer[Plan]

// Hash returns a hash of which the low bits differ for most rules, maxima and periods. It is
// good enough for a table that may forget a plan, and takes a tenth of the time.
func (k Key) Hash() uint64 {
	const golden = 0x9E3779B97F4A7C15 // see Knuth, The Art of Computer Programming 3, 6.4
	return (uint64(uintptr(k.Rule)) + uint64(k.Max)<<32 + uint64(uintptr(unsafe.Pointer(k.Period)))<<8) * golden >> 40
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
