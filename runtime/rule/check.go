package rule

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
)

// ErrInvalidLimit is the error of a limit that cannot be counted: a negative cost or max, a
// window out of bounds, two limits of a call that have one key and count in different ways.
// It is returned whatever the failure policy is, and nothing is charged. An invalid limit
// in [ModeShadow] mode is reported and left out instead.
var ErrInvalidLimit = errors.New("invalid rate limit")

// minWait is the shortest Wait. A number without a unit is nanoseconds.
const minWait = time.Microsecond

// Check returns an [ErrInvalidLimit] that says what is wrong with the rule: then no call can be
// counted by it. A rule that is right may still conflict with another one, see
// runtime.Limiter.Register.
func (r *Rule) Check() error {
	if r == nil {
		return Engine.CheckPrefix(r)
	}
	return Engine.CheckCall(r, r.Max, 1)
}

// fits returns which field has no effect beside the algorithm, or nil.
func (r *Rule) fits() error {
	plain := r.plain()
	if r.Storage != StorageZSET && !plain.Takes("storage") {
		return fmt.Errorf("storage: a %v is stored in one way: leave Storage out", r.Algorithm)
	}
	if r.Resolution != 0 && !plain.Takes("resolution") {
		return fmt.Errorf("resolution: a %v keeps no times of events: leave Resolution out", r.Algorithm)
	}
	if r.Buckets != (Buckets{}) && !plain.Takes("buckets") {
		return fmt.Errorf("buckets: a %v has none: leave Buckets out, or count with a %v", r.Algorithm, SlidingCounter)
	}
	return nil
}

// check returns what is wrong with the numbers of the rule, which has a period of the calendar
// or not, or with the max and cost of a call.
func (r *Rule) check(p *calendar.Period, max, cost int64) error {
	window, plain := r.Window, r.plain()
	drains := plain.Is(algorithm.Drains)
	if p != nil {
		window = p.Unit.Longest()
	}
	switch {
	case cost < 0:
		return fmt.Errorf("cost %d is negative", cost)
	case max < 0:
		return fmt.Errorf("max %d is negative", max)
	case p == nil && (window < MinWindow || window > MaxWindow):
		return fmt.Errorf("window %v is not between %v and 366 days", window, MinWindow)
	case max > plain.Most:
		return fmt.Errorf("max %d is above %d, the maximum of a %v", max, plain.Most, r.Algorithm)
	case r.Burst < 0 || r.Burst > MaxCount:
		return fmt.Errorf("burst %d is not between 0 and %d", r.Burst, int64(MaxCount))
	case r.Burst > 0 && !drains:
		return fmt.Errorf("burst: a %v admits max in a window and no more at once: leave burst out, or count with a %v or a %v", r.Algorithm, TokenBucket, LeakyBucket)
	case r.Wait < 0 || r.Wait > 0 && r.Wait < minWait:
		return fmt.Errorf("wait %v is below %v, in which no turn comes", r.Wait, minWait)
	case max > 0 && p == nil && drains && float64(Engine.Capacity(r, max))*float64(window.Microseconds()) > spec.MaxDrain*float64(max):
		return fmt.Errorf("a burst of %d would take more than 142 years to drain at %d in %v", r.Burst, max, window)
	case r.Buckets.coarse < 0:
		return fmt.Errorf("buckets are not between 1 and %d", MaxBuckets)
	case r.Debt > DebtForgive:
		return fmt.Errorf("debt: unknown policy %d", uint8(r.Debt))
	case r.Ledger > LedgerHash:
		return fmt.Errorf("ledger: unknown ledger %d", uint8(r.Ledger))
	case r.Headroom < -1:
		return fmt.Errorf("headroom %d is negative", r.Headroom)
	case r.Headroom == 0 && r.Resolution|r.Block|r.Lease|r.Reserve == 0 && r.Keep == 0 && r.Ledger == LedgerOff && r.Debt == DebtDefault && !r.Hold && p == nil:
		return nil
	}
	fit := spec.Rule{Algorithm: plain.Name, Window: window, Resolution: r.Resolution, Wait: r.Wait, Block: r.Block, Lease: r.Lease, Reserve: r.Reserve, Hold: r.Hold, Period: p != nil, Keep: int64(r.Keep), Ledger: r.Ledger != LedgerOff, Shared: r.Headroom != 0}
	if r.Debt != DebtDefault {
		fit.Debt = r.Debt.String()
	}
	return cmp.Or(fit.Check(), r.checkHeadroom())
}

// checkHeadroom returns what is wrong with the headroom of a bucket.
func (r *Rule) checkHeadroom() error {
	least, most := max(1, r.Headroom), spec.MostHeadroom(Engine.Capacity(r, r.Max), r.Max)
	if r.Headroom == 0 || r.Max <= 0 || least <= most {
		return nil
	}
	return fmt.Errorf("headroom %d is above %d, half the burst and no more than max: give the rule a larger burst, or a lower headroom", least, most)
}

// plain returns the row of the rule's algorithm, which has what holds whatever else the rule says.
func (r *Rule) plain() *algorithm.Row { return algorithm.RowOf(r.Algorithm) }

// Lapses reports whether a call has what it is charged only while it runs: permits, and what is
// reserved. It lapses unless the limiter renews it, so such a decision has to be settled.
func (r *Rule) Lapses() bool { return r.Reserve > 0 || r.plain().Is(algorithm.Lends) }

// isQueue reports whether calls leave the rule evenly spaced.
func (r *Rule) isQueue() bool { return r.Wait > 0 && r.plain().Meets(algorithm.Wait) }

// burst returns the burst of a bucket without leases, or of a queue: max, and what drains within Wait, rounded up,
// so that it keeps nobody out whose turn comes by then.
func (r *Rule) burst(max int64) int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	if r.isQueue() {
		waiting := float64(r.Wait.Microseconds()) * float64(max) / float64(r.Window.Microseconds())
		return int64(min(float64(MaxCount), float64(max)+math.Ceil(waiting)))
	}
	return max
}

// drained returns how much of a bucket drains in a lease at a max, rounded up. It is below max,
// since a lease is shorter than its window, of a rule that is right.
func (r *Rule) drained(max int64) int64 {
	if r.Window < MinWindow || r.Lease <= 0 || r.Lease >= r.Window { // which Check refuses, or has none
		return 0
	}
	high, low := bits.Mul64(uint64(max), uint64(r.Lease.Microseconds()))
	drains, rest := bits.Div64(high, low, uint64(r.Window.Microseconds()))
	if rest > 0 {
		drains++
	}
	return int64(drains)
}
