// Package decide decides calls. A call is a list of charges that nobody writes to. What
// is found about each of them is a charge of [terms] of its own, made anew at each try.
//
// The stages of a decision are functions of one form over both lists, in the order of
// [Engine.Local]: what can never be, what a lease has, what a store has denied before, and
// what this process counts itself. They keep nothing of what they are given, so that the
// lists of a lone call may be on its caller's stack. What they leave open is the store's,
// see [Engine.Ask], and that is handed memory which may outlive the caller's patience.
//
// It is handed plans, and never reads a rule. It promises that a limit in shadow mode
// changes nothing for the others of a call, and that what no store decides is decided by
// the failure policies, in one place. It never waits for a call's turn, and tells nobody
// about decisions.
package decide

import (
	"context"
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Never is the RetryAfter of a charge that can never be made.
const Never time.Duration = math.MaxInt64

// A Charge is one limit of a call, or several on one key. Nobody writes to it once the
// call is made.
type Charge struct {
	Plan *plan.Plan
	Key  []byte
	Cost int64
	// Own is the max before overrides and load have changed it.
	Own int64
	// Limits are those of the call that the charge is for: bit i stands for the i-th.
	Limits uint8
	// EmptyPart reports that a part of the key is empty.
	EmptyPart bool
}

// By returns the plan by which a charge was decided at a try.
func (c *Charge) By(try *terms.Charge) *plan.Plan {
	if try.Source == terms.ByLocal {
		return c.Plan.Share
	}
	return c.Plan
}

// A Try is what there is about a try beside its charges.
type Try struct {
	// Arrived is the instant at which it began.
	Arrived time.Duration
	// Again says that the call has waited.
	Again bool
	// Receipt is the decision's, on Page. Page is nil if it has none yet.
	Receipt uint16
	Page    *receipts.Page
}

// A Call is one call on its way, in memory that may be used again.
type Call struct {
	Try
	Charges []Charge       // those of limits in shadow mode behind the others
	Tries   []terms.Charge // what was found about each
	Turn    *permit.Turn   // in a line for permits, or nil

	open [1]terms.Call  // what the store is asked
	left []terms.Charge // its charges, if leases have admitted some
}

// Clear makes the call one without charges.
func (c *Call) Clear() {
	clear(c.Charges)
	clear(c.Tries)
	clear(c.left)
	c.Charges, c.Tries, c.left, c.open[0], c.Try = c.Charges[:0], c.Tries[:0], c.left[:0], terms.Call{}, Try{}
}

// Begin begins a try: nothing is known about any charge. A call that began to wait at a
// time, which is zero if it may not, waits no longer than its rules and its context say.
func (c *Call) Begin(ctx context.Context, began time.Time, arrived time.Duration) {
	c.Arrived, c.Page = arrived, nil
	clear(c.Tries)
	c.Tries = c.Tries[:0]
	for i := range c.Charges {
		c.Tries = append(c.Tries, terms.Charge{})
		c.Charges[i].Plan.Charge(&c.Tries[i], c.Charges[i].Key, c.Charges[i].Cost)
	}
	if !began.IsZero() {
		c.limitWait(ctx, began)
	}
}

// limitWait sets how long each charge may still wait: the rest of its rule's
// Wait, or of the time until the context's deadline if that is shorter.
func (c *Call) limitWait(ctx context.Context, began time.Time) {
	now, left := time.Now(), Never
	if deadline, ok := ctx.Deadline(); ok {
		left = max(0, deadline.Sub(now))
	}
	for i := range c.Tries {
		t, p := &c.Tries[i], c.Charges[i].Plan
		t.Wait = min(left, max(0, p.Wait-now.Sub(began)))
		if p.Queues() {
			t.More = t.Wait.Microseconds()
		}
	}
}

// Waits reports whether any rule of the call lets it wait.
func (c *Call) Waits() bool {
	for i := range c.Charges {
		if c.Charges[i].Plan.Wait > 0 {
			return true
		}
	}
	return false
}

// Admitted reports whether every limit that may deny a call has room.
func Admitted(tries []terms.Charge) bool {
	for i := range tries {
		if !tries[i].Allowed && !tries[i].Shadow {
			return false
		}
	}
	return true
}

// enforces reports whether any of the charges may deny the call.
func enforces(tries []terms.Charge) bool {
	return len(tries) > 0 && !tries[0].Shadow // those in shadow mode stand behind the others
}

// Source returns who has decided a call as a whole: this process, if any charge was made
// by it alone, or else who has decided the limits that may deny the call.
func Source(tries []terms.Charge) (source terms.Source) {
	enforced := enforces(tries)
	for i := range tries {
		c := &tries[i]
		if c.Source == terms.ByLocal {
			return terms.ByLocal
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
var weight = [...]uint8{terms.ByLease: 1, terms.Recalled: 2, terms.ByStore: 3, terms.ByProcess: 3, terms.ByFailure: 4}
