package model

import (
	"math/bits"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/internal/spec"
)

// applyLease returns the largest cost that a call may have when a lease has lowered a
// bucket's burst by what drains in its time.
func (b *Builder) applyLease(l *Limit, most int64) int64 {
	r := l.Rule
	lease := r.Lease().Microseconds()
	if lease <= 0 || r.Dynamic || !spec.IsBucket(r.Algorithm()) || r.Lease() >= r.Window() {
		return most
	}
	admitted := int64(directive.DefaultMax)
	if r.Max != nil {
		admitted, _ = int64Of(r.Max.Const)
	}
	high, low := bits.Mul64(uint64(admitted), uint64(lease))
	drains, rest := bits.Div64(high, low, uint64(r.Window().Microseconds()))
	if rest > 0 {
		drains++
	}
	if left := most - int64(drains); left >= 1 {
		return left
	}
	b.Report.At(r.Place("lease"), "lease: %d of the %d calls that the bucket admits at once drain in %s, so none could be charged ahead: shorten the lease, or set a burst above %d",
		drains, most, directive.ShortDuration(r.Lease()), drains)
	return most
}
