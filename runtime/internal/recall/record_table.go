package recall

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	shards = 64
	// shardSlots bounds the memory that callers over their limits can take:
	// 65,536 keys in all.
	shardSlots = 1024
	// setSize is how many keys with the same hash bits there may be. Pointers to
	// them fill one line of memory.
	setSize = 8
)

// A table finds records by their keys. A lookup takes no lock, since the table
// is made for floods of refused calls: slots point to records that never change.
// A change of a slot takes a lock, and comes after a trip to Redis.
type table struct {
	seed   maphash.Seed
	used   atomic.Bool // a record was added once
	shards [shards]shard
}

type shard struct {
	slots      atomic.Pointer[[]slot] // their number is a power of two
	mu         sync.Mutex             // held to write
	forgetTime time.Duration          // when a key was last forgotten on purpose
	_          [40]byte
}

type slot = atomic.Pointer[record]

// A record holds the refusals of one key, or of a tenant of one. It never changes.
type record struct {
	hash       uint64
	key        string
	tenant     string
	freshEnd   time.Duration // of the refusal that is fresh for longest
	refusalEnd time.Duration // until when any refusal does, at the longest
	refusals   []*refusal
}

func (t *table) hash(key, tenant []byte) uint64 {
	hash := maphash.Bytes(t.seed, key)
	if len(tenant) > 0 {
		hash ^= maphash.Bytes(t.seed, tenant) * 3
	}
	return hash
}

func (r *record) is(hash uint64, key, tenant []byte) bool {
	return r.hash == hash && r.key == string(key) && r.tenant == string(tenant)
}

func (t *table) find(key, tenant []byte) *record {
	hash := t.hash(key, tenant)
	slots := t.shards[hash%shards].slots.Load()
	if slots == nil {
		return nil
	}
	set := slotSet(*slots, hash)
	for i := range uint64(setSize) {
		r := set[place(hash, i)].Load()
		if r != nil && r.is(hash, key, tenant) {
			return r
		}
	}
	return nil
}

// slotSet returns the slots that a hash tries.
func slotSet(slots []slot, hash uint64) *[setSize]slot {
	first := hash / shards & uint64(len(slots)-1) &^ (setSize - 1)
	return (*[setSize]slot)(slots[first : first+setSize])
}

// place returns which slot of its set a hash tries as its i-th. Hashes seldom begin at
// the same one.
func place(hash, i uint64) uint64 { return (hash/shards + i) % setSize }

// add adds a refusal, for which Redis was asked at an instant, to those of its
// key. If the set of the key has no free slot, nor one of a record that does not hold
// any more, the shard grows. If it cannot, the record takes the slot of the first that is
// not fresh any more. Add does nothing if a key of the shard was forgotten since.
func (t *table) add(key, tenant []byte, n *refusal, asked time.Duration) {
	hash := t.hash(key, tenant)
	s := &t.shards[hash%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked <= s.forgetTime {
		return
	}
	for {
		slots := s.slots.Load()
		if slots == nil {
			s.grow(setSize)
			continue
		}
		victim := s.victim(*slots, hash, key, tenant, asked)
		old := victim.Load()
		other := old != nil && !old.is(hash, key, tenant)
		if other && old.refusalEnd > asked && len(*slots) < shardSlots {
			s.grow(2 * len(*slots))
			continue
		}
		if other {
			old = nil
		}
		next := old.withRefusal(n, asked)
		next.hash, next.key, next.tenant = hash, string(key), string(tenant)
		victim.Store(next)
		if !t.used.Load() {
			t.used.Store(true)
		}
		return
	}
}

// withRefusal returns the record of a key with one more refusal. It leaves out those
// that do not hold any more, and the oldest if there are too many.
func (r *record) withRefusal(n *refusal, now time.Duration) *record {
	next := &record{freshEnd: n.freshEnd, refusalEnd: n.fitTime, refusals: []*refusal{n}}
	if r == nil {
		return next
	}
	for _, old := range r.refusals {
		if len(next.refusals) < maxCosts && old.fitTime > now && (old.cost != n.cost || old.weight != n.weight || old.terms != n.terms) {
			next.refusals = append(next.refusals, old)
			next.freshEnd, next.refusalEnd = max(next.freshEnd, old.freshEnd), max(next.refusalEnd, old.fitTime)
		}
	}
	return next
}

// victim returns the slot that the record of a key may have: its own, or else a free one, or
// that of a record that does not hold any more, or of the first not to be fresh.
func (s *shard) victim(slots []slot, hash uint64, key, tenant []byte, now time.Duration) *slot {
	var victim *slot
	soonest := time.Duration(0)
	set := slotSet(slots, hash)
	for i := range uint64(setSize) {
		slot := &set[place(hash, i)]
		until, old := time.Duration(0), slot.Load()
		if old != nil {
			if old.is(hash, key, tenant) {
				return slot
			}
			if old.refusalEnd > now {
				until = max(now, old.freshEnd)
			}
		}
		if victim == nil || until < soonest {
			victim, soonest = slot, until
		}
	}
	return victim
}

func (s *shard) grow(size int) {
	slots := make([]slot, size)
	if old := s.slots.Load(); old != nil {
		for i := range *old {
			if r := (*old)[i].Load(); r != nil {
				s.victim(slots, r.hash, []byte(r.key), []byte(r.tenant), 0).Store(r) // its set holds no more than it did
			}
		}
	}
	s.slots.Store(&slots)
}

// drop removes a record, if it has not been replaced.
func (t *table) drop(r *record) {
	s := &t.shards[r.hash%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	set := slotSet(*s.slots.Load(), r.hash)
	for i := range set {
		set[i].CompareAndSwap(r, nil)
	}
}

// forget removes the record of a key, and keeps refusals from being added for
// which Redis was asked before now. It returns the key's hash.
func (t *table) forget(key []byte, now time.Duration) (hash uint64) {
	hash = t.hash(key, nil)
	s := &t.shards[hash%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetTime = now
	slots := s.slots.Load()
	if slots == nil {
		return hash
	}
	set := slotSet(*slots, hash)
	for i := range set {
		slot := &set[i]
		if r := slot.Load(); r != nil && r.is(hash, key, nil) {
			slot.Store(nil)
		}
	}
	return hash
}
