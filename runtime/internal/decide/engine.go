// Package decide decides calls. A call is a list of charges that nobody writes to. The result
// of each charge is in a charge of package [terms], which is made anew at each try.
//
// The stages of a decision are those of [Engine.Local], in its order: charges that can never
// be made, units of leases, remembered denials, and counts in this process. They keep nothing
// of their arguments, so that the lists of a lone call may be on its caller's stack. The store
// decides the charges that the stages leave open, see [Engine.Ask]. It is handed those of a
// [Call], which are on the heap. Such a call may wait, see [Call.Await]: until its limits have
// room, in a line for permits, or for as long as its place in a queue says.
//
// The package is handed plans, and never reads a rule. It promises that a limit in shadow
// mode changes nothing for the others of a call, that the failure policies are applied in
// one place, and that a call waits no longer than its rules and its context allow. It reports no
// decisions.
package decide

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
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
	// Denials are denials of Store. Nil: Store is asked about every call.
	Denials *denials.Memory
	// Leases are of units of Store's. Nil: there are none.
	Leases *ledger.Leases
	// Alone counts where Store gave no answer and a rule fails locally.
	Alone *memstate.Store
	// Failed is called for a charge that was not decided, with the policy that decides it.
	Failed func(ctx context.Context, p *plan.Plan, policy rule.FailurePolicy, err error)

	shadowPauses shadowPauses
}

// Local decides a call by what this process knows, stage by stage. It returns false if
// the store must be asked about charges of which the source is still [rule.SourceNone].
func (e *Engine) Local(ctx context.Context, charges []Charge, tries []terms.Charge, t *Try) bool {
	switch {
	case Unsatisfiable(charges):
		denyForever(charges, tries)
		return true
	case ctx.Err() != nil:
		return false
	case e.Leases != nil && e.lease(charges, tries):
		return true
	case e.Denials != nil && !t.Again && e.Denials.Recall(tries, t.Arrived):
		markRecalled(tries)
		return true
	case e.InProcess == nil || len(tries) != 1: // to ask about several is as quick
		return false
	}
	// It cannot be counted here if the key holds the state of another algorithm.
	page, receipt, ok := e.InProcess.Map.Take(e.InProcess.Time(t.Arrived), &tries[0])
	if ok {
		t.Page, t.Receipt, tries[0].Source = page, receipt, rule.SourceStore
	}
	return ok
}

// denyForever denies a call of which a charge can never be made.
func denyForever(charges []Charge, tries []terms.Charge) {
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

// markRecalled sets the source of remembered denials. The other charges of the call keep none.
func markRecalled(tries []terms.Charge) {
	for i := range tries {
		if tries[i].Recalled {
			tries[i].Source = rule.SourceRecalled
		}
	}
}

// A Charge is one limit of a call, or several on one key. Nobody writes to it once the
// call is made.
type Charge struct {
	Plan *plan.Plan
	Key  []byte
	Cost int64
	// DeclaredMax is the max before overrides and load have changed it.
	DeclaredMax int64
	// Limits are those of the call that the charge is for: bit i stands for the i-th.
	Limits uint8
	// EmptyPart reports that a part of the key is empty, InvalidKey that one could not be built.
	EmptyPart, InvalidKey bool

	atTurn bool // it is made at the call's turn, which has come
}

// By returns the plan by which a charge was decided at a try.
func (c *Charge) By(try *terms.Charge) *plan.Plan {
	if try.Source == rule.SourceLocal {
		return c.Plan.Share
	}
	return c.Plan
}

// Made returns how much was charged at a try, if anything was: no more than this process's
// share, if that has decided.
func (c *Charge) Made(try *terms.Charge) int64 { return min(c.Cost, c.By(try).Capacity) }

// A Try is the state of a try that belongs to no single charge.
type Try struct {
	// Arrived is the instant at which it began.
	Arrived time.Duration
	// Again says that the call has waited.
	Again bool
	// Receipt is the decision's, on Page. Page is nil if it has none yet.
	Receipt uint16
	Page    *terms.ReceiptPage
}

// A Call is one call on its way, in memory that may be used again.
type Call struct {
	Try
	Setting
	Charges []Charge       // those of limits in shadow mode behind the others
	Tries   []terms.Charge // what was found about each

	keys        []byte         // of the charges
	storeCall   [1]terms.Call  // what the store is asked
	openCharges []terms.Charge // its charges, if leases have admitted some
	book        terms.ReceiptBook
	// Shelf has what decisions keep of calls with several limits.
	Shelf ledger.Shelf
	// WaitedBefore is how long it had waited elsewhere before it came here.
	WaitedBefore time.Duration

	turn        *ledger.Turn  // in a line for room, or nil
	leftQueue   bool          // before its turn
	permitPause time.Duration // before it last asked for permits
	waitStart   time.Duration // the instant at which it began to wait; 0: it has not waited
	rule        string        // the rule that kept it for longest then
}

var callPool = sync.Pool{New: func() any { return new(Call) }}

// NewCall returns a call without charges, which is to be freed.
func NewCall() *Call { return callPool.Get().(*Call) }

// Free lets others use the call's memory.
func (c *Call) Free() {
	c.Clear()
	if !c.Large() {
		callPool.Put(c)
	}
}

// Large reports whether the call has more memory than others need.
func (c *Call) Large() bool { return cap(c.keys) > 16*terms.MaxKey }

// Clear makes the call one without charges. It keeps its place in a line, and goes on to wait.
func (c *Call) Clear() {
	again := c.Again
	clear(c.Charges)
	clear(c.Tries)
	clear(c.openCharges)
	c.Charges, c.Tries, c.openCharges, c.keys, c.storeCall[0] = c.Charges[:0], c.Tries[:0], c.openCharges[:0],
		c.keys[:0], terms.Call{}
	c.Try, c.leftQueue = Try{Again: again}, false
}

// Key appends the key of a charge by a plan to the call's memory.
func (c *Call) Key(p *plan.Plan, parts []byte) []byte {
	start := len(c.keys)
	c.keys = p.AppendKey(c.keys, parts)
	return c.keys[start:len(c.keys):len(c.keys)]
}

// Adopt makes the charge of a lone limit that does not wait, and goes on with a try of it.
// Rechecks is what was found about that.
func (c *Call) Adopt(p *plan.Plan, parts []byte, cost, own int64, try *Try, rechecks bool) {
	c.Charges = append(c.Charges, Charge{Plan: p, Key: c.Key(p, parts), Cost: cost, Limits: 1, DeclaredMax: own})
	c.Begin(context.Background(), 0, try.Arrived)
	c.Tries[0].Rechecks = rechecks
}

// Prove gives the call a receipt, if it has none.
func (c *Call) Prove() {
	if c.Page == nil {
		c.Page, c.Receipt = c.book.Issue()
	}
}

// Begin begins a try at an instant: nothing is known about any charge. A call that has waited since
// another one, which is 0 if it may not wait, does so no longer than its rules and its context say.
func (c *Call) Begin(ctx context.Context, since, arrived time.Duration) {
	c.Arrived, c.Page = arrived, nil
	clear(c.Tries)
	c.Tries = c.Tries[:0]
	for i := range c.Charges {
		c.Tries = append(c.Tries, terms.Charge{})
		c.Charges[i].Plan.Charge(&c.Tries[i], c.Charges[i].Key, c.Charges[i].Cost)
	}
	if since != 0 {
		c.limitWait(ctx, since)
	}
}

// Waited returns how long the call had waited when its last try began.
func (c *Call) Waited() time.Duration {
	if c.waitStart == 0 {
		return c.WaitedBefore
	}
	return c.WaitedBefore + max(0, c.Arrived-c.waitStart)
}

// enforces reports whether any of the charges may deny the call.
func enforces(tries []terms.Charge) bool {
	return len(tries) > 0 && !tries[0].Shadow // those in shadow mode stand behind the others
}

// Source returns who has decided a call as a whole: this process, if any charge was made
// by it alone, or else who has decided the limits that may deny the call.
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
