package decide

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/lease"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// An Engine decides calls. Its fields are set before the first one.
type Engine struct {
	// Store is asked about what the process cannot decide. Nil: nobody is.
	Store terms.Store
	// Memory is Store if that counts in this process and is nothing else.
	Memory *memstate.Store
	// Denials are what Store has denied before. Nil: it is asked about every call.
	Denials *denials.Memory
	// Leases are of units of Store's. Nil: there are none.
	Leases *lease.Leases
	// Alone counts where Store gave no answer and a rule fails locally.
	Alone *memstate.Store
	// Failed is told of a charge that was not decided, and which policy decides it.
	Failed func(ctx context.Context, p *plan.Plan, policy plan.Policy, err error)
	// Breaks reports whether an error may be the fault of one limit of many.
	Breaks func(err error) bool

	rests rests
}

// Local decides a call by what this process knows, stage by stage. It returns false if
// the store must be asked about charges of which the source is still [terms.Nobody].
func (e *Engine) Local(ctx context.Context, charges []Charge, tries []terms.Charge, t *Try) bool {
	switch {
	case Unsatisfiable(charges):
		never(charges, tries)
		return true
	case ctx.Err() != nil:
		return false
	case e.Leases != nil && e.lease(charges, tries):
		return true
	case e.Denials != nil && !t.Again && e.Denials.Recall(tries, t.Arrived):
		recalled(tries)
		return true
	case e.Memory == nil || len(tries) != 1: // to ask about several is as quick
		return false
	}
	// It cannot be counted here if the key holds the state of another algorithm.
	page, receipt, ok := e.Memory.Map.Take(e.Memory.Time(t.Arrived), &tries[0])
	if ok {
		t.Page, t.Receipt, tries[0].Source = page, receipt, terms.ByStore
	}
	return ok
}

// never denies a call of which a charge can never be made, for ever.
func never(charges []Charge, tries []terms.Charge) {
	for i := range charges {
		c := &tries[i].Result
		if c.Allowed = true; charges[i].Plan.Unsatisfiable(charges[i].Cost) {
			c.Allowed, c.RetryAfter = false, Never
		}
	}
}

// Unsatisfiable reports whether no waiting would admit a call.
func Unsatisfiable(charges []Charge) bool {
	for i := range charges {
		if charges[i].Plan.Unsatisfiable(charges[i].Cost) {
			return true
		}
	}
	return false
}

// lease admits what leases have units for, and reports whether that is all of a call.
func (e *Engine) lease(charges []Charge, tries []terms.Charge) bool {
	held := 0
	for i := range charges {
		if p := charges[i].Plan; p.Lease > 0 && e.Leases.Take(p, &tries[i]) {
			held++
		}
	}
	return held > 0 && held == len(charges)
}

// recalled notes who has decided a call that was denied before: the other charges were
// not looked at.
func recalled(tries []terms.Charge) {
	for i := range tries {
		if tries[i].Recalled {
			tries[i].Source = terms.Recalled
		}
	}
}

// unanswered denies a call that the store has not decided, if it was denied before and
// the time is not over: a caller that was over its limit is let through no sooner because
// the store is gone.
func (e *Engine) unanswered(call *terms.Call, now time.Duration) bool {
	return e.Denials.Call(call, now, denials.Unanswered)
}
