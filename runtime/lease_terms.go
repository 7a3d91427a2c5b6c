package runtime

import (
	"math/bits"
	"time"
)

// A store that charges units at a time t lets a process admit calls by them
// before t+Lease. So a window that ends at s holds calls by units that were charged
// in (s-Window-Lease, s], and it is these that Max bounds.

// span returns for how long a store counts an event of the rule. A [FixedWindow]
// needs no more than its window, since no lease outlives that; a bucket has a lower
// burst instead.
func (r *Rule) span() time.Duration {
	switch r.Algorithm {
	case SlidingLog, SlidingCounter:
		return r.Window + r.Lease
	}
	return r.Window
}

// leasedBurst returns a bucket's burst without what drains in a lease at a max.
// Where nothing would be left the rule has no leases, and all of its burst.
func (r *Rule) leasedBurst(burst, max int64) int64 {
	if r.Window < MinWindow || r.Lease >= r.Window {
		return burst // check refuses it
	}
	// Rounded up. The quotient is below max, since a lease is shorter than its window.
	high, low := bits.Mul64(uint64(max), uint64(r.Lease.Microseconds()))
	drains, rest := bits.Div64(high, low, uint64(r.Window.Microseconds()))
	if rest > 0 {
		drains++
	}
	if int64(drains) >= burst {
		return burst
	}
	return burst - int64(drains)
}

// leases reports whether the rule, with max in place of its own, has leases.
func (r *Rule) leases(max int64) bool {
	if r.Lease == 0 {
		return false
	}
	if r.Algorithm != TokenBucket && r.Algorithm != LeakyBucket {
		return true
	}
	burst := max
	if r.Burst > 0 {
		burst = r.Burst
	}
	return r.leasedBurst(burst, max) < burst
}

// fitLease takes away the lease of a rule whose window was overridden by one that
// is not longer.
func (r *Rule) fitLease() {
	if r.Lease >= r.Window {
		r.Lease = 0
	}
}
