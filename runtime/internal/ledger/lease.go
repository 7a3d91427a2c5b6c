package ledger

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// A lease is what this process holds of one key of a rule with a Lease: a grant,
// and another one that follows it. It knows how much of the key the process has
// lately used, by which it asks for the next.
type lease struct {
	hash uint64
	key  string
	plan *plan.Plan

	grant       atomic.Pointer[grant]
	earliestAsk atomic.Int64 // instant before which no grant is asked for
	pending     atomic.Bool  // a grant is on its way

	mu         sync.Mutex // held to write grant, and to use what follows
	usage      usage
	remaining  int64         // what was left of the limit by the store's last answer
	answerTime time.Duration // instant of that answer
	reset      bool          // the key was reset: no grant is kept any more
}

// A grant is units that the store has charged in one go. It admits calls until it
// is used up, its time is over or it is closed.
type grant struct {
	unitsLeft atomic.Int64 // units, below 0 while a call finds too few, and from closing on
	_         [56]byte     // what follows is only read, and unitsLeft is written all the time

	end         time.Duration // instant until which it admits calls
	refillTime  time.Duration // instant from which the next one is asked for,
	refillUnits int64         // or from so few units on
	chargeTime  int64         // the time that its charge counts as,
	mark        int64         // and the charge's mark
	remaining   int64         // what was left of the limit after that charge
	resetTime   time.Duration // the instant at which the limit was going to be whole
	next        atomic.Pointer[grant]

	countedUnits int64 // units used that the lease's usage knows of
	chargedUnits int64 // that the store has charged
}

// closedGrant is far below what a grant has left otherwise.
const closedGrant = math.MinInt64 / 2

// put puts units back, and reports whether they can still be used.
func (g *grant) put(units int64, now time.Duration) bool {
	return now < g.end && g.unitsLeft.Add(units) > closedGrant/2
}

// close ends the grant, and returns how many units it has left. If a call is just
// finding too few they seem to be less, and never more.
func (g *grant) close() int64 { return max(0, g.unitsLeft.Swap(closedGrant)) }

// units returns how many units the lease has left at an instant.
func (l *lease) units(now time.Duration) (n int64) {
	for g := l.grant.Load(); g != nil; g = g.next.Load() {
		if now < g.end {
			n = max(n, g.unitsLeft.Load()) // a call takes its units from one grant
		}
	}
	return n
}

// put puts units back that were charged as of a time, and reports whether they can
// still be used.
func (l *lease) put(units, at int64, now time.Duration) bool {
	for g := l.grant.Load(); g != nil; g = g.next.Load() {
		if g.chargeTime == at && g.put(units, now) {
			return true
		}
	}
	return false
}

// advance puts the next grant in the place of one that has too few units left, and
// reports whether there is another one now.
func (l *lease) advance(t *Leases, g *grant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant.Load() == g {
		next := g.next.Load()
		l.grant.Store(next)
		l.retire(t, g)
	}
	return l.grant.Load() != nil
}

// retire closes a grant and has what it has left given back. The caller holds mu.
func (l *lease) retire(t *Leases, g *grant) {
	left := g.close()
	l.count(g, left, clock.Now())
	if left > 0 && !l.reset {
		t.ledger.giveBack(l.plan, l.plan.Correction([]byte(l.key), left, left, g.chargeTime, g.mark))
	}
}

// count adds what was used of a grant since it was counted last to the lease's
// usage. The caller holds mu.
func (l *lease) count(g *grant, left int64, now time.Duration) {
	if used := g.chargedUnits - left - g.countedUnits; used > 0 && left >= 0 {
		g.countedUnits += used
		l.usage.add(used, now, l.plan.Lease)
	}
}

// A usage is how much was used lately: a sliding counter of two buckets.
type usage struct {
	bucketStart              time.Duration // instant at which the newer bucket began
	newerBucket, olderBucket int64
}

// advance lets time go on to an instant. Periods are the width of a bucket.
func (u *usage) advance(now, period time.Duration) {
	age := now - u.bucketStart
	if age >= 2*period {
		*u = usage{bucketStart: now}
	} else if age >= period {
		*u = usage{bucketStart: u.bucketStart + period, olderBucket: u.newerBucket}
	}
}

func (u *usage) add(n int64, now, period time.Duration) {
	u.advance(now, period)
	u.newerBucket += n
}

// recent returns how much was used in the period before an instant, if the older
// bucket was used evenly.
func (u *usage) recent(now, period time.Duration) int64 {
	u.advance(now, period)
	part := 1 - float64(now-u.bucketStart)/float64(period)
	return u.newerBucket + int64(float64(u.olderBucket)*part)
}
