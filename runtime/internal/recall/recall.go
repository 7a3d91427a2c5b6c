// Package recall remembers which calls Redis has refused, and until when. Until
// then an equal call on the same key cannot be admitted, unless somebody gives
// back what was charged, so Redis need not be asked.
//
// A refusal answers calls of the same cost and terms, so that its RetryAfter is exact. It is
// fresh for at most the time that the memory trusts refusals. Then it is stale: one call
// rechecks it by asking Redis, and other calls are still refused by it until the answer comes.
//
// A refusal holds for times that count from before Redis was asked, and so are never later than
// Redis's own. What callers are told counts from the answer, and so is never sooner: who waits
// for that long finds room, however long either trip takes. In between Redis is asked.
package recall

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxCosts is how many refusals a key may have, by cost and terms.
	maxCosts = 4
	// partTime bounds the trust in a refusal where calls may be charged in parts.
	partTime = 50 * time.Millisecond
	// permitTime bounds the trust in a refusal for lack of permits: another
	// process may return one at any time.
	permitTime = 50 * time.Millisecond
)

// A Memory remembers refusals. It is safe for concurrent use.
type Memory struct {
	trust      time.Duration
	parts      bool         // see Parts
	newestTime atomic.Int64 // instant at which the newest refusal was added
	table      table

	divided     atomic.Bool               // a refusal of a tenant was added once
	forgetTimes [forgetSlots]atomic.Int64 // instants at which keys of tenants were forgotten, by their hashes
}

// forgetSlots bounds the memory for keys of tenants that were forgotten. Some forget those of others.
const forgetSlots = 256

// A refusal holds for charges of its terms and cost before an instant. But for
// rechecking it never changes.
type refusal struct {
	terms      terms.Terms
	weight     int64 // of the tenant, or 0
	cost       int64
	remaining  int64
	fitTime    time.Duration // when the charge may fit
	certainFit time.Duration // when it fits for sure
	resetTime  time.Duration // when the limit is whole again for sure
	freshEnd   time.Duration // how long it is fresh: never longer than fitTime
	asked      time.Duration // when Redis was asked
	blocked    bool
	rechecking atomic.Bool // a call asks whether it still holds
}

// New returns an empty memory that trusts a refusal for at most trust.
func New(trust time.Duration) *Memory {
	return &Memory{trust: trust, table: table{seed: maphash.MakeSeed()}}
}

// Parts says that calls may be charged in parts. A call may then be refused because of a part
// that another process gives back in a moment, so refusals are trusted for a moment only. It
// must be called before the memory is used.
func (m *Memory) Parts() { m.parts = true }

// Empty reports whether no refusal was ever added.
func (m *Memory) Empty() bool { return !m.table.used.Load() }

// Recall reports whether charges are refused without asking Redis, and then fills
// in their results. Otherwise they must be released when Redis was asked.
func (m *Memory) Recall(charges []terms.Charge, now time.Duration) bool {
	if m.Empty() {
		return false
	}
	if !m.lookUp(charges, now, Rechecked) {
		if !m.lookUp(charges, now, Rechecking) {
			return false
		}
		m.Release(charges)
	}
	return true
}

// Release lets another call recheck the refusals that charges were to recheck. If Redis answered
// they are replaced or gone.
func (m *Memory) Release(charges []terms.Charge) {
	for i := range charges {
		c := &charges[i]
		if !c.Rechecks {
			continue
		}
		c.Rechecks = false
		if n := m.find(c, 0, Fresh); n != nil {
			n.rechecking.Store(false)
		}
	}
}

// Learn remembers the refusals of a call that Redis was asked about at one instant and has
// answered by another, and forgets refusals that no longer hold. It reports whether there is a
// refusal; the caller then calls Publish. Refusals of queues are not remembered, since their times depend on who
// waits, nor are those of a tenant that is behind, who may have room before.
func (m *Memory) Learn(call *terms.Call, asked, answered time.Duration) (refused bool) {
	for i := range call.Charges {
		c := &call.Charges[i]
		trust, remaining := m.trust, c.Remaining
		if c.Blocked {
			remaining = 0
		} else if c.Is(algorithm.Lends) {
			trust = min(trust, permitTime)
		} else if m.parts {
			trust = min(trust, partTime)
		}
		if c.Shadow || c.Behind || !c.Is(algorithm.Repeats) || c.Deferred && c.Allowed && c.At == 0 {
			continue
		}
		if !c.Allowed {
			refused = true
			if c.Weight != 0 && !m.divided.Load() {
				m.divided.Store(true)
			}
			m.table.add(c.Key, c.Tenant, &refusal{
				terms: c.Terms, weight: c.Weight, asked: asked, cost: c.Cost, remaining: remaining, blocked: c.Blocked,
				fitTime: asked + c.RetryAfter, certainFit: answered + c.RetryAfter, resetTime: answered + c.ResetAfter,
				freshEnd: asked + min(c.RetryAfter, trust),
			}, asked)
		} else if m.table.used.Load() {
			if r := m.table.find(c.Key, c.Tenant); r != nil && r.isRefuted(c, asked) {
				m.table.drop(r)
			}
		}
	}
	return refused
}

// isRefuted reports whether an admitted charge shows that a refusal, which was
// stale when Redis was asked, does not hold.
func (r *record) isRefuted(c *terms.Charge, asked time.Duration) bool {
	for _, n := range r.refusals {
		if n.freshEnd <= asked && n.cost <= c.Cost && n.terms == c.Terms && n.weight == c.Weight {
			return true
		}
	}
	return false
}

// Publish says that calls that arrive from now on find what was learned.
func (m *Memory) Publish() {
	now := int64(clock.Now())
	for {
		last := m.newestTime.Load()
		if last >= now || m.newestTime.CompareAndSwap(last, now) {
			return
		}
	}
}

// RefusedSince reports whether all calls of a caller that arrived at an instant
// are refused by fresh refusals of which some were learned since, and then fills
// in their results. Stale ones do not count: the caller may be the one that
// rechecks them.
func (m *Memory) RefusedSince(calls []terms.Call, arrived time.Duration) bool {
	if m.newestTime.Load() < int64(arrived) {
		return false
	}
	now := clock.Now()
	for i := range calls {
		if calls[i].Again || !m.Call(&calls[i], now, Fresh) {
			return false
		}
	}
	return len(calls) > 0
}

// Forget removes the refusals of a key, and those that Redis is about to answer.
func (m *Memory) Forget(key []byte) {
	now := clock.Now()
	hash := m.table.forget(key, now)
	if m.divided.Load() {
		m.forgetTimes[hash%forgetSlots].Store(int64(now))
	}
}

// forgotten reports whether a tenant's refusal is of before its key was forgotten.
func (m *Memory) forgotten(c *terms.Charge, n *refusal) bool {
	return c.Weight != 0 && int64(n.asked) <= m.forgetTimes[m.table.hash(c.Key, nil)%forgetSlots].Load()
}
