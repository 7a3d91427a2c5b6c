package ledger

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
)

const (
	setCount = 1024
	// setSize is how many keys with the same hash bits there may be.
	setSize = 8
)

// A leaseTable finds leases by their keys, without a lock. It holds 8,192 of them:
// a key that has a lease or is about to get one is used all the time, and pushes out
// those that are not.
type leaseTable struct {
	seed maphash.Seed
	sets atomic.Pointer[[setCount]bucket] // nil before the first lease
	mu   sync.Mutex                       // held to write
}

type bucket [setSize]atomic.Pointer[lease]

// findOrAdd returns the lease of a key under a plan. If it is new it takes the
// place of the one that was longest not used in its set, of those that hold nothing.
// It returns nil if there is none.
func (t *leaseTable) findOrAdd(key []byte, p *plan.Plan) *lease {
	if e := t.find(key, p); e != nil {
		return e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sets.Load() == nil {
		t.sets.Store(new([setCount]bucket))
	}
	if e := t.find(key, p); e != nil {
		return e // another call was first
	}
	hash := maphash.Bytes(t.seed, key)
	set := &t.sets.Load()[hash%setCount]
	var victim *atomic.Pointer[lease]
	oldest := time.Duration(math.MaxInt64)
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
	e := &lease{hash: hash, key: string(key), plan: p}
	victim.Store(e)
	return e
}

// idle reports whether the lease holds nothing and gets nothing, and since when.
func (l *lease) idle() (touched time.Duration, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answerTime, l.grant.Load() == nil && !l.pending.Load()
}

// each calls visit with every lease of a key, under whatever plan.
func (t *leaseTable) each(key []byte, visit func(*lease)) {
	sets := t.sets.Load()
	if sets == nil {
		return
	}
	hash := maphash.Bytes(t.seed, key)
	set := &sets[hash%setCount]
	for i := range set {
		if e := set[i].Load(); e != nil && e.hash == hash && e.key == string(key) {
			visit(e)
		}
	}
}

func (t *leaseTable) remove(e *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := &t.sets.Load()[e.hash%setCount]
	for i := range set {
		set[i].CompareAndSwap(e, nil)
	}
}

// all yields every lease.
func (t *leaseTable) all(yield func(*lease) bool) {
	sets := t.sets.Load()
	for i := 0; sets != nil && i < len(sets); i++ {
		for j := range sets[i] {
			if e := sets[i][j].Load(); e != nil && !yield(e) {
				return
			}
		}
	}
}

// Count returns for how many keys there is or was a lease, and how many units these have
// left.
func (l *Leases) Count() (keys int, units int64) {
	for e := range l.table.all {
		keys++
		for g := e.grant.Load(); g != nil; g = g.next.Load() {
			units += max(0, g.unitsLeft.Load())
		}
	}
	return keys, units
}

// Units returns how many units there are that can be used, by the name of the rule.
func (l *Leases) Units() map[string]int64 {
	units := map[string]int64{}
	if l == nil {
		return units
	}
	now := clock.Now()
	for e := range l.table.all {
		for g := e.grant.Load(); g != nil; g = g.next.Load() {
			if now < g.end {
				units[e.plan.Name] += max(0, g.unitsLeft.Load())
			}
		}
	}
	return units
}
