package runtime

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	leaseSets = 1024
	// leaseWays is how many keys with the same hash bits there may be.
	leaseWays = 8
)

// A leaseTable finds leases by their keys, without a lock. It holds 8,192 of them:
// a key that has a lease or is about to get one is used all the time, and pushes out
// those that are not.
type leaseTable struct {
	seed maphash.Seed
	sets atomic.Pointer[[leaseSets]leaseSet] // nil before the first lease
	mu   sync.Mutex                          // held to write
}

type leaseSet [leaseWays]atomic.Pointer[lease]

// find returns the lease of a key under a rule and max, or nil.
func (t *leaseTable) find(key []byte, rule *Rule, max int64) *lease {
	sets := t.sets.Load()
	if sets == nil {
		return nil
	}
	hash := maphash.Bytes(t.seed, key)
	set := &sets[hash%leaseSets]
	for i := range set {
		e := set[i].Load()
		if e != nil && e.hash == hash && e.rule == rule && e.max == max && e.key == string(key) {
			return e
		}
	}
	return nil
}

// enter returns the lease of a key under a rule and max. If it is new it takes the
// place of the one that was longest not used in its set, of those that hold nothing.
// It returns nil if there is none.
func (t *leaseTable) enter(key []byte, rule *Rule, max int64) *lease {
	if e := t.find(key, rule, max); e != nil {
		return e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sets.Load() == nil {
		t.sets.Store(new([leaseSets]leaseSet))
	}
	if e := t.find(key, rule, max); e != nil {
		return e // another call was first
	}
	hash := maphash.Bytes(t.seed, key)
	set := &t.sets.Load()[hash%leaseSets]
	var victim *atomic.Pointer[lease]
	oldest := Never
	for i := range set {
		old := set[i].Load()
		if old == nil {
			victim = &set[i]
			break
		}
		if touched, idle := old.idle(); idle && touched < oldest {
			victim, oldest = &set[i], touched
		}
	}
	if victim == nil {
		return nil
	}
	e := &lease{hash: hash, key: string(key), rule: rule, max: max}
	victim.Store(e)
	return e
}

// idle reports whether the lease holds nothing and gets nothing, and since when.
func (e *lease) idle() (touched time.Duration, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.touched, e.current.Load() == nil && !e.asking.Load()
}

// each calls visit with every lease of a key, under whatever rule and max.
func (t *leaseTable) each(key []byte, visit func(*lease)) {
	sets := t.sets.Load()
	if sets == nil {
		return
	}
	hash := maphash.Bytes(t.seed, key)
	set := &sets[hash%leaseSets]
	for i := range set {
		if e := set[i].Load(); e != nil && e.hash == hash && e.key == string(key) {
			visit(e)
		}
	}
}

// remove removes a lease.
func (t *leaseTable) remove(e *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := &t.sets.Load()[e.hash%leaseSets]
	for i := range set {
		set[i].CompareAndSwap(e, nil)
	}
}
