// Package lease holds units that a process has charged ahead for keys with more calls than
// one Redis decides, and admits calls by these units.
//
// It is handed charges of rules with a lease, and the store's results for such charges. It
// promises that no call is admitted by units that the store has not charged,
// nor after their time: a store that charges units at a time t lets a process use them
// before t+Lease, and counts them for that much longer. It never denies a call, and never
// has one wait for the store.
package lease

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

	current   atomic.Pointer[grant]
	notBefore atomic.Int64 // instant before which no grant is asked for
	asking    atomic.Bool  // a grant is on its way

	mu      sync.Mutex // held to write current, and to use what follows
	usage   usage
	room    int64         // what was left of the limit by the store's last answer
	touched time.Duration // instant of that answer
	dropped bool          // the key was reset: no grant is kept any more
}

// A grant is units that the store has charged in one go. It admits calls until it
// is used up, its time is over or it is closed.
type grant struct {
	left atomic.Int64 // units, below 0 while a call finds too few, and from closing on
	_    [56]byte     // what follows is only read, and left is written all the time

	end   time.Duration // instant until which it admits calls
	ahead time.Duration // instant from which the next one is asked for,
	low   int64         // or from so few units on
	at    int64         // the time that its charge counts as,
	mark  int64         // and the charge's mark
	rest  int64         // what was left of the limit after that charge
	whole time.Duration // the instant at which the limit was going to be whole
	next  atomic.Pointer[grant]

	counted int64 // units used that the lease's usage knows of
	units   int64 // that the store has charged
}

// closed is far below what a grant has left otherwise.
const closed = math.MinInt64 / 2

// put puts units back, and reports whether they can still be used.
func (g *grant) put(units int64, now time.Duration) bool {
	return now < g.end && g.left.Add(units) > closed/2
}

// close ends the grant, and returns how many units it has left. If a call is just
// finding too few they seem to be less, and never more.
func (g *grant) close() int64 { return max(0, g.left.Swap(closed)) }

// units returns how many units the lease has left at an instant.
func (e *lease) units(now time.Duration) (n int64) {
	for g := e.current.Load(); g != nil; g = g.next.Load() {
		if now < g.end {
			n = max(n, g.left.Load()) // a call takes its units from one grant
		}
	}
	return n
}

// put puts units back that were charged as of a time, and reports whether they can
// still be used.
func (e *lease) put(units, at int64, now time.Duration) bool {
	for g := e.current.Load(); g != nil; g = g.next.Load() {
		if g.at == at && g.put(units, now) {
			return true
		}
	}
	return false
}

// advance puts the next grant in the place of one that has too few units left, and
// reports whether there is another one now.
func (e *lease) advance(t *Leases, g *grant) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current.Load() == g {
		next := g.next.Load()
		e.current.Store(next)
		e.retire(t, g)
	}
	return e.current.Load() != nil
}

// retire closes a grant and has what it has left given back. The caller holds mu.
func (e *lease) retire(t *Leases, g *grant) {
	left := g.close()
	e.count(g, left, clock.Now())
	if left > 0 && !e.dropped {
		t.giveBack(e.plan, e.plan.Units([]byte(e.key), left, left, g.at, g.mark))
	}
}

// count adds what was used of a grant since it was counted last to the lease's
// usage. The caller holds mu.
func (e *lease) count(g *grant, left int64, now time.Duration) {
	if used := g.units - left - g.counted; used > 0 && left >= 0 {
		g.counted += used
		e.usage.add(used, now, e.plan.Lease)
	}
}

// A usage is how much was used lately: a sliding counter of two buckets.
type usage struct {
	began       time.Duration // instant at which the newer bucket began
	now, before int64
}

// turn lets time go on to an instant. Periods are the width of a bucket.
func (u *usage) turn(now, period time.Duration) {
	switch age := now - u.began; {
	case age >= 2*period:
		*u = usage{began: now}
	case age >= period:
		*u = usage{began: u.began + period, before: u.now}
	}
}

func (u *usage) add(n int64, now, period time.Duration) {
	u.turn(now, period)
	u.now += n
}

// lately returns how much was used in the period before an instant, if the older
// bucket was used evenly.
func (u *usage) lately(now, period time.Duration) int64 {
	u.turn(now, period)
	part := 1 - float64(now-u.began)/float64(period)
	return u.now + int64(float64(u.before)*part)
}
