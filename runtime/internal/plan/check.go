package plan

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// minWait is the shortest Wait. A number without a unit is nanoseconds.
const minWait = time.Microsecond

// Check returns what is wrong with the rule's numbers, or with the max and cost of a call.
func (r *Rule) Check(max, cost int64) error {
	switch {
	case cost < 0:
		return fmt.Errorf("cost %d is negative", cost)
	case max < 0:
		return fmt.Errorf("max %d is negative", max)
	case r.Period == nil && (r.Window < spec.MinWindow || r.Window > spec.MaxWindow):
		return fmt.Errorf("window %v is not between %v and 366 days", r.Window, spec.MinWindow)
	case max > r.row().max:
		return fmt.Errorf("max %d is above %d, the maximum of a %v", max, r.row().max, r.Way)
	case r.Burst < 0 || r.Burst > spec.MaxCount:
		return fmt.Errorf("burst %d is not between 0 and %d", r.Burst, int64(spec.MaxCount))
	case r.Burst > 0 && !r.drains():
		return fmt.Errorf("burst: a %v admits max in a window and no more at once: leave burst out, or count with a %v or a %v", r.Way, TokenBucket, LeakyBucket)
	case r.Wait < 0 || r.Wait > 0 && r.Wait < minWait:
		return fmt.Errorf("wait %v is below %v, in which no turn comes", r.Wait, minWait)
	case max > 0 && float64(r.Capacity(max))*float64(r.Window.Microseconds()) > terms.MaxDrain*float64(max):
		return fmt.Errorf("a burst of %d would take more than 142 years to drain at %d in %v", r.Burst, max, r.Window)
	case r.Coarse < 0:
		return fmt.Errorf("buckets are not between 1 and %d", spec.MaxBuckets)
	case r.Resolution|r.Block|r.Lease|r.Reserve == 0 && r.Keep == 0 && r.Debt == spec.DebtDefault && !r.Hold && r.Period == nil:
		return nil
	}
	fit := spec.Rule{Algorithm: r.Way.String(), Window: r.Window, Resolution: r.Resolution, Wait: r.Wait, Block: r.Block, Lease: r.Lease, Reserve: r.Reserve, Debt: r.Debt, Hold: r.Hold, Period: r.Period != nil, Keep: r.Keep}
	return fit.Check()
}

// CheckCost returns an error if a cost could be admitted at a max, but at the price of too
// much work for a store. A cost above max is no such error: it is denied before it comes to
// a store.
func (r *Rule) CheckCost(max, cost int64) error {
	most := r.MostCost()
	if cost <= most || cost > r.Capacity(max) {
		return nil
	}
	if r.Way == Concurrency {
		return fmt.Errorf("cost %d is above %d, the most permits that one call may hold of a %v: count in larger units", cost, most, r.Way)
	}
	return fmt.Errorf("cost %d is above %d, the most that one call may charge to a %v: count with a %v or a %v, or charge it in several calls",
		cost, most, r.Way, SlidingCounter, TokenBucket)
}
