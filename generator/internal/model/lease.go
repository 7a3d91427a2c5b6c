package model

import (
	"cmp"
	"math/bits"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// applyLease returns the largest cost that a call may have when a lease has lowered a
// bucket's burst by what drains in its time.
func (b *Builder) applyLease(l *Limit, most int64) int64 {
	r := l.Rule
	if r.Dynamic || r.Lease() >= r.Window() {
		return most
	}
	drains := r.drains()
	if left := most - drains; drains == 0 || left >= 1 {
		return left
	}
	b.Report.At(r.Place("lease"), "lease: %d of the %d calls that the bucket admits at once drain in %s, so none could be charged ahead: shorten the lease, or set a burst above %d",
		drains, most, spec.DurationText(r.Lease()), drains)
	return most
}

// burst returns what a rule that is not dynamic admits at once.
func (r *Rule) burst() int64 { return cmp.Or(r.Burst(), r.most()) }

// drains returns by how much a lease lowers the burst of a bucket: by what drains in its time.
func (r *Rule) drains() int64 {
	lease := r.Lease().Microseconds()
	if lease <= 0 || !r.Plain().Is(algorithm.Drains) {
		return 0
	}
	high, low := bits.Mul64(uint64(r.most()), uint64(lease))
	drains, rest := bits.Div64(high, low, uint64(r.Window().Microseconds()))
	if rest > 0 {
		drains++
	}
	return int64(drains)
}
