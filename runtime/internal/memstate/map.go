// Package memstate keeps the states of limits in this process's memory. Each
// algorithm of package terms has a state here.
//
// A [Map] decides as the scripts of package lua do: on the same sequence of
// operations and times both find the same, in every field of a result. It
// is the model that the scripts are tested against. Each kind of state names the
// script that it repeats.
//
// A Map holds a bounded number of keys, and it starts no goroutine.
package memstate

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// errOtherState is the error of a charge to a key that holds the state of an algorithm
// that counts in another way.
func errOtherState(c *terms.Charge) error {
	if c.Label == nil {
		return private.New("the key holds the state of another algorithm")
	}
	return private.Errorf("the key of rule %q holds the state of another algorithm", c.Label.Name)
}

// shardCount is at most 64, so that a set of shards fits a word.
const shardCount = 64

// usualCharges is how many charges of a call are decided without an allocation.
const usualCharges = 8

// A Map holds the states of keys. It is safe for concurrent use.
//
// A full Map drops a key to make room for a new one. It looks at a few keys and
// drops one that is forgotten anyway, or else the one that will be forgotten
// first, and one that is blocked only if it finds no other.
//
// Its methods take the time from their caller, in microseconds since 1970. The
// time may step back.
type Map struct {
	shards [shardCount]shard // first, so that each begins with a cache line
	seed   maphash.Seed
	max    int // keys in a shard

	// Tells reports that shares of periods are told.
	Tells bool
	// Lost, if not nil, is called when a full Map first drops a key that still counts, and when
	// it first drops one that is blocked.
	Lost func(blocked bool)

	losses, newLosses atomic.Uint32 // kinds of keys
}

// New returns an empty Map for at least maxKeys keys and at most 63 more.
func New(maxKeys int) *Map {
	return &Map{seed: maphash.MakeSeed(), max: max(1, (maxKeys+shardCount-1)/shardCount)}
}

// Take decides a call with one charge and fills in its result. It makes the charge if
// there is room for it, and gives it a flag. It returns false, and has
// changed nothing, if the key holds the state of an algorithm that counts in another way.
//
// Take keeps neither the charge nor its key: both may be on the caller's stack. The issuer of
// flags is behind the lock that the charge takes anyway.
func (m *Map) Take(clock int64, c *terms.Charge) (flags *terms.Flags, flag uint16, ok bool) {
	var v view
	var p reachedShares
	s, hash := m.shard(c.Key)
	s.mu.Lock()
	e, ok := s.look(clock, hash, c, &v)
	switch {
	case !ok:
	case c.Allowed && c.Cost == 0:
	case c.Allowed:
		p = s.charge(clock, hash, c, &v, e, m)
		flags, flag = s.flags.Issue()
	case e != nil:
		e.updateRefused(clock, c, &v)
	}
	s.mu.Unlock() // A deferred unlock would take as long as the lock.
	m.tell(c, p)
	m.tellLost()
	return flags, flag, ok
}

// Peek fills in the result that Take would find, and makes no charge.
func (m *Map) Peek(clock int64, c *terms.Charge) (ok bool) {
	var v view
	s, hash := m.shard(c.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.look(clock, hash, c, &v)
	if ok {
		e.fillPast(clock, c)
	}
	return ok
}

// tell tells a charge's rule which shares it has passed. No lock is held then.
func (m *Map) tell(c *terms.Charge, p reachedShares) {
	if p.shares != 0 && m.Tells {
		c.Tell(p.shares, p.used, p.timeLeft)
	}
}

// DecideAll decides a call with any number of charges, of which the keys differ:
// it makes all of those that have room, or none if one that is not in shadow
// mode has none. Without charges it does nothing.
//
// DecideAll returns the index of the first charge whose key holds the state of
// an algorithm that counts in another way, and -1 if there is none. It has
// charged nothing if there is one. A charge in shadow mode, beside others, is marked as
// failed instead, and the others are decided as if it was not there.
func (m *Map) DecideAll(clock int64, charges []terms.Charge, commit bool) (conflict int) {
	conflict, all := m.decideAll(clock, charges, commit)
	for _, p := range all {
		m.tell(&charges[p.charge], p)
	}
	m.tellLost()
	return conflict
}

// decideAll is DecideAll, and returns what is to be told of charges.
func (m *Map) decideAll(clock int64, charges []terms.Charge, commit bool) (conflict int, all []reachedShares) {
	var array [usualCharges]uint64
	hashes := array[:0]
	locked := uint64(0)
	for i := range charges {
		_, hash := m.shard(charges[i].Key)
		locked |= 1 << (hash % shardCount)
		hashes = append(hashes, hash)
	}
	m.lock(locked)
	defer m.unlock(locked)

	var turn time.Duration
	var v view
	for i, hash := range hashes {
		c := &charges[i]
		c.Err = nil
		_, ok := m.shards[hash%shardCount].look(clock, hash, c, &v)
		if ok {
			if !c.Deferred && !c.Shadow && c.Allowed && c.Algorithm == algorithm.Queue {
				turn = max(turn, terms.Micros(v.delay))
			}
		} else if c.Shadow && len(charges) > 1 {
			c.Err = errOtherState(c)
		} else {
			return i, nil
		}
	}
	admitted := true
	for i := range charges {
		if c := &charges[i]; c.Err == nil {
			_ = c.AwaitsTurn(turn)
			admitted = admitted && (c.Allowed || c.Shadow)
		}
	}
	if !commit {
		for i, hash := range hashes {
			if c := &charges[i]; c.Err == nil && c.Keep > 0 {
				m.shards[hash%shardCount].find(hash, c.Key, clock).fillPast(clock, c)
			}
		}
		return -1, nil
	}
	for i, hash := range hashes {
		// A charge before this one may have dropped its key to make room, so it
		// looks again.
		c, s := &charges[i], &m.shards[hash%shardCount]
		if c.Err != nil {
			continue
		}
		v.mark, v.behind = 0, false // which few kinds have
		e, ok := s.look(clock, hash, c, &v)
		waits := ok && c.AwaitsTurn(turn)
		switch {
		case !ok:
			return i, all
		case c.Allowed && c.Cost == 0:
		case admitted && c.Allowed && !waits:
			if p := s.charge(clock, hash, c, &v, e, m); p.shares != 0 {
				p.charge = i
				all = append(all, p)
			}
		case e != nil:
			e.updateRefused(clock, c, &v)
		}
	}
	return -1, all
}

// Settle charges c.Cost to c.Key however little room there is. If that is below
// 0, it takes back up to so much of what was charged at c.At, or nothing if that
// is no longer counted. It reports false if the key holds the state of another
// kind.
func (m *Map) Settle(clock int64, charge *terms.Charge) bool {
	c := *charge
	p, ok := m.settle(clock, &c)
	m.tell(charge, p)
	m.tellLost()
	return ok
}

// settle is Settle, and returns what is to be told.
func (m *Map) settle(clock int64, c *terms.Charge) (p reachedShares, ok bool) {
	s, hash := m.shard(c.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if kinds[c.Algorithm] == reservedKind {
		return s.settleReserved(clock, hash, c, m)
	}
	if c.Cost <= 0 {
		c.Cost = -c.Cost
		e := s.find(hash, c.Key, clock)
		if e == nil || c.Cost == 0 {
			return p, true
		}
		if !e.setKind(c.Algorithm) {
			return p, false
		}
		kept := e.dropTime
		p = e.write(refundStep, clock, c, nil)
		e.keepBlock(clock, kept, c)
		return p, true
	}
	var v view
	owed := c.Cost
	c.Cost = 0
	e, ok := s.look(clock, hash, c, &v)
	c.Cost = owed
	if c.Debt == rule.DebtForgive {
		c.Cost = min(owed, max(0, v.room))
	}
	if ok && c.Cost > 0 {
		p = s.charge(clock, hash, c, &v, e, m)
	}
	return p, ok
}

// Renew keeps what was charged to c.Key at c.At from lapsing for another window,
// and writes it again if it is gone. If it was reset since, it sets c.At to 0. A
// renewal at a cost of 0 is a reset of such an algorithm. Renew returns false, and has changed
// nothing, if the key holds the state of an algorithm that counts in another way.
func (m *Map) Renew(clock int64, c *terms.Charge) bool {
	p, ok := m.renew(clock, c)
	m.tell(c, p)
	m.tellLost()
	return ok
}

// renew is Renew, and returns what is to be told.
func (m *Map) renew(clock int64, c *terms.Charge) (p reachedShares, ok bool) {
	s, hash := m.shard(c.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Terms.SetClock(clock)
	e := s.find(hash, c.Key, clock)
	if e != nil && !e.setKind(c.Algorithm) {
		return p, false
	}
	return s.prepare(clock, hash, c, e, m).write(renewStep, clock, c, nil), true
}

// Reset forgets a key.
func (m *Map) Reset(key []byte) {
	s, hash := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.keys.find(hash, key); i >= 0 {
		s.keys.remove(i)
	}
}

// Len returns how many keys the Map holds.
func (m *Map) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.keys.count
		s.mu.Unlock()
	}
	return n
}

// shard returns the shard of a key, and the key's hash.
func (m *Map) shard(key []byte) (*shard, uint64) {
	hash := maphash.Bytes(m.seed, key)
	return &m.shards[hash%shardCount], hash
}

// lock locks a set of shards in ascending order, so that no two calls wait for
// each other.
func (m *Map) lock(set uint64) {
	for ; set != 0; set &= set - 1 {
		m.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
}

func (m *Map) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		m.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}
