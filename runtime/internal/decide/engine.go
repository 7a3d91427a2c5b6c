// Package decide decides calls. A call is a list of charges that nobody writes to. The result
// of each charge is in a charge of package [terms], which is made anew at each try.
//
// The stages of a decision are those of [Engine.Local], in its order: charges that can never
// be made, units of leases, remembered refusals, and counts in this process. They keep nothing
// of their arguments, so that the lists of a lone call may be on its caller's stack. The store
// decides the charges that the stages leave open, see [Engine.Ask]. It is handed those of a
// [Call], which are on the heap. Such a call may wait, until its limits have room, in a line for
// permits, or for as long as its place in a queue says: [Engine.Run] has its states.
//
// A [Charge] is what a limit asks of a call, whatever has happened. A [terms.Charge] is that at one
// try, with what was found. What a decision keeps of it, to settle it, is a [ledger.Made], and of all the call a [ledger.Kept].
//
// The package promises that a limit in shadow mode changes nothing for the others of a call, that the
// failure policies are applied in one place, and that a call waits no longer than its rules and its
// context allow. It tells what is decided to whoever wants to know, see [Engine.Tell].
package decide

import (
	"context"
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Never is the RetryAfter of a charge that can never be made.
const Never time.Duration = math.MaxInt64

// An Engine decides calls. Its fields are set before the first one.
type Engine struct {
	// Store decides what the process cannot. It may be nil.
	Store terms.Store
	// InProcess is Store if that counts in this process and is nothing else.
	InProcess *memstate.Store
	// Refusals are refusals of Store. Nil: Store is asked about every call.
	Refusals *recall.Memory
	// Leases are of units of Store's. Nil: there are none.
	Leases *ledger.Leases
	// Alone counts where Store gave no answer and a rule fails locally.
	Alone *memstate.Store
	// Plans say what limits mean now.
	Plans *plan.Plans
	// Lines are where calls wait for room.
	Lines *ledger.Lines
	// Permits are those of this process.
	Permits *ledger.Permits
	// Switch switches all limits off.
	Switch interface{ Enabled() bool }
	// Closed is closed when no call is to wait any more.
	Closed <-chan struct{}
	// Polls says that the program may switch limits off, and that nobody tells when.
	Polls bool
	// Events are told what is decided, and what is wrong with limits.
	Events *report.Events
	// Calls counts what is decided. It may be nil.
	Calls *callers.Calls
	// Exceeded is called for a limit in soft mode that has no room for a call.
	Exceeded func(ctx context.Context, r *rule.Rule, limit, remaining int64, retryAfter time.Duration, blocked bool)

	shadowPauses shadowPauses
}

// Local decides a call by what this process knows, stage by stage. It returns false if
// the store must be asked about charges of which the source is still [rule.SourceNone].
func (e *Engine) Local(ctx context.Context, charges []Charge, tries []terms.Charge, t *Try) bool {
	if Unsatisfiable(charges) {
		refuseForever(charges, tries)
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	if e.Leases != nil && e.lease(charges, tries) {
		return true
	}
	if e.Refusals != nil && t.State == Planned && e.Refusals.Recall(tries, t.Arrived) {
		markRecalled(tries)
		return true
	}
	if e.InProcess == nil || len(tries) != 1 { // to ask about several is as quick
		return false
	}
	// It cannot be counted here if the key holds the state of another algorithm.
	flags, flag, ok := e.InProcess.Map.Take(e.InProcess.Time(t.Arrived), &tries[0])
	if ok {
		t.Flags, t.Flag, tries[0].Source = flags, flag, rule.SourceStore
	}
	return ok
}

// refuseForever refuses a call of which a charge can never be made.
func refuseForever(charges []Charge, tries []terms.Charge) {
	for i := range charges {
		c := &tries[i].Result
		c.Allowed = true
		if charges[i].Plan.Unsatisfiable(charges[i].Cost) {
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
		if p := charges[i].Plan; p.Lease > 0 && !tries[i].Deferred && e.Leases.Use(p, &tries[i]) {
			held++
		}
	}
	return held > 0 && held == len(charges)
}

// markRecalled sets the source of remembered refusals. The other charges of the call keep none.
func markRecalled(tries []terms.Charge) {
	for i := range tries {
		if tries[i].Recalled {
			tries[i].Source = rule.SourceRecalled
		}
	}
}

// A Charge is one limit of a call, or several on one key. Nobody writes to it once the
// call is made: what is found about it at a try is in a [terms.Charge].
type Charge struct {
	Plan *plan.Plan
	Key  []byte
	Cost int64
	terms.Tenancy
	// Max is that of the limit, as [rule.Limit.WithMax] has set it. Overrides and load change the plan's, not this one.
	Max int64
	// Limits are those of the call that the charge is for: bit i stands for the i-th.
	Limits uint8
	// EmptyPart reports that a part of the key is empty, InvalidKey that one could not be built.
	EmptyPart, InvalidKey bool

	atTurn bool // it is made at the call's turn, which has come
}

// begin fills in a new try of the charge.
func (c *Charge) begin(t *terms.Charge) {
	c.Plan.Charge(t, c.Key, c.Cost)
	t.Tenancy = c.Tenancy
}

// DecidingPlan returns the plan by which a charge was decided at a try.
func (c *Charge) DecidingPlan(try *terms.Charge) *plan.Plan {
	if try.Source == rule.SourceLocal {
		return c.Plan.Share
	}
	return c.Plan
}

// Made returns how much was charged at a try, if anything was: no more than this process's
// share, if that has decided.
func (c *Charge) Made(try *terms.Charge) int64 { return min(c.Cost, c.DecidingPlan(try).Capacity) }

// enforces reports whether any of the charges may refuse the call.
func enforces(tries []terms.Charge) bool {
	return len(tries) > 0 && !tries[0].Shadow // those in shadow mode stand behind the others
}

// Source returns who has decided a call as a whole: this process, if any charge was made
// by it alone, or else who has decided the limits that may refuse the call.
func Source(tries []terms.Charge) (source rule.Source) {
	enforced := enforces(tries)
	for i := range tries {
		c := &tries[i]
		if c.Source == rule.SourceLocal {
			return rule.SourceLocal
		}
		if enforced && c.Shadow {
			continue
		}
		if weight[c.Source] > weight[source] {
			source = c.Source
		}
	}
	return source
}

// weight says which source stands for a call of which several have decided.
var weight = [...]uint8{
	rule.SourceLease: 1, rule.SourceRecalled: 2, rule.SourceStore: 3, rule.SourceProcess: 3, rule.SourceFailure: 4,
}
