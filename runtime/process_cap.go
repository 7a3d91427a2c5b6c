package runtime

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// WithProcessCap puts a limit in memory before the store: r bounds how many calls of this
// process are admitted, whatever their rules and keys. It protects the process and the store
// when one node is flooded. It is always in force, also while the store gives no answer, and
// for calls whose own limits are switched off, cost nothing or have an invalid key. Only the
// limiter's kill switch ends it too.
//
// Each call costs 1. A call that is refused by its own limits gives its charge back; a
// [Limiter.Refund] does not. Overrides, a [rule.Scaler], r's Mode and its Block apply to the cap,
// r's Wait does not. A call over the cap gets a [*LimitedError] with r's name, and its decision
// has the source [rule.SourceProcess]. [Limiter.Peek] ignores the cap. A nil r is no cap, and
// New panics if there are two. A cap cannot be a [Concurrency]: every call is [ErrInvalidLimit]
// then.
func WithProcessCap(r *Rule) Option {
	return func(l *Limiter) {
		if r == nil {
			return
		}
		checkOnce("WithProcessCap", l.processCap != nil)
		if r.Wait > 0 {
			once := *r
			once.Wait = 0
			r = &once
		}
		l.processCap = &processCap{limit: r.Limit(nil)}
		l.processCap.counts.InProcess = memstate.NewStore(1)
	}
}

// A processCap is the limit that all calls of a limiter must pass first.
type processCap struct {
	limit  Limit
	counts decide.Engine
}

// A paidCap is what one call was charged for the cap: nothing, if the plan is nil.
type paidCap struct {
	plan             *plan.Plan
	chargeTime, mark int64
}

// chargeCap charges one call to the cap. The error is non-nil if and only if the call may not go
// on.
func (l *Limiter) chargeCap(ctx context.Context, paid *paidCap, d *Decision) error {
	r := l.processCap.limit.Rule
	p, on, err := l.plans.Plan(&l.processCap.limit)
	if r.Reserve > 0 {
		return fmt.Errorf("%w: rule %q: a process cap has no Reserve, since nothing settles its charges: leave it out",
			ErrInvalidLimit, r.Name)
	}
	if algorithm.RowOf(r.Algorithm).Is(algorithm.Lends) {
		return fmt.Errorf("%w: rule %q: a process cap is no %v, since nothing returns its permits: give the limits of the calls one beside their own",
			ErrInvalidLimit, r.Name, r.Algorithm)
	}
	if !on {
		return nil
	}
	if err != nil && p != nil && p.Terms.Shadow {
		l.events.Failure(ctx, p, FailOpen, ClassOf(err), err)
		return nil
	}
	if err != nil {
		return err
	}
	var charges [1]decide.Charge
	var tries [1]terms.Charge
	charges[0].Plan, charges[0].Key, charges[0].Cost, charges[0].Limits = p, p.Whole, 1, 1
	p.Charge(&tries[0], p.Whole, 1)
	try := decide.Try{Arrived: clock.Now()}
	if !l.processCap.counts.Local(context.Background(), charges[:], tries[:], &try) {
		return nil // an override has changed how it counts, and what was counted is not over
	}
	tries[0].Source = rule.SourceProcess
	if paid.chargeTime, paid.mark = tries[0].At, tries[0].Mark; paid.chargeTime != 0 {
		paid.plan = p
	}
	if err = l.answer(ctx, charges[:], tries[:], try.Arrived, 0, d); err == nil {
		*d = Decision{}
	}
	return err
}

// giveBack gives back what chargeCap has charged for a call. A nil cap has charged nothing.
func (c *processCap) giveBack(paid *paidCap) {
	if p := paid.plan; p != nil {
		back := terms.Charge{Terms: p.Terms, Key: p.Whole, Cost: -1, Charged: 1}
		back.At, back.Mark = paid.chargeTime, paid.mark
		c.counts.InProcess.Map.Settle(c.counts.InProcess.Time(clock.Now()), &back)
	}
}
