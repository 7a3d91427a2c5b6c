package spec

import (
	"errors"
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
)

// The policies for debts, which are costs beyond a limit that are known only after the call, as
// directives spell them. Without one a fixed window refuses, and others carry.
const (
	DebtRefuse  = "refuse"  // it counts until the period ends
	DebtCarry   = "carry"   // the next period, or the time to come, has so much less
	DebtForgive = "forgive" // it does not count
)

// CheckReserve returns what is wrong with a reserve by itself.
func CheckReserve(d time.Duration) error {
	if d < MinWindow || d > MaxWindow || d%time.Microsecond != 0 {
		return fmt.Errorf("%v is not between %v and 366d, in whole microseconds", d, MinWindow)
	}
	return nil
}

// FitsReserve returns what keeps charges of the rule from lapsing.
func (r *Rule) FitsReserve() error {
	lacks := r.Takes("reserve")
	if lacks != nil {
		return lacks
	}
	if !r.plain().Meets(algorithm.Return) {
		return fmt.Errorf("charges to a %s leave it by themselves, and only those of a window or period wait for its end: remove reserve, or write algorithm=fixed-window or a period such as window=month", r.Algorithm)
	}
	if r.Block > 0 {
		return errors.New("what lapses makes room again, and a block keeps callers out all the same: remove reserve or block")
	}
	if r.Lease > 0 {
		return errors.New("units of a lease are charged ahead of their calls, which cannot renew them: remove reserve or lease")
	}
	if r.Hold {
		return errors.New("a key with reservations cannot be held back: write hold on a second limit, of the rate")
	}
	return nil
}

// FitsDebt returns what keeps the rule from its policy for debts.
func (r *Rule) FitsDebt() error {
	lacks := r.Takes("debt")
	if lacks != nil {
		return lacks
	}
	if r.Debt == DebtRefuse && r.plain().Debt != DebtRefuse {
		return fmt.Errorf("a %s has no period that ends: write debt=forgive, or remove the option, and what is owed counts until it has left", r.Algorithm)
	}
	if r.Debt == DebtCarry && r.plain().Debt == DebtRefuse && (r.Block > 0 || r.Lease > 0 || r.Hold) {
		return errors.New("a fixed-window that carries debts has no block, lease or hold: remove debt or these")
	}
	return nil
}
