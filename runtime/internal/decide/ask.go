package decide

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// ErrNoStore is the error of a limiter without a store.
var ErrNoStore = private.New("the limiter has no store")

var callPool = sync.Pool{New: func() any { return new(Call) }}

// NewCall returns a call without charges, which is to be freed.
func NewCall(what Operation) *Call {
	c := callPool.Get().(*Call)
	c.Operation = what
	return c
}

// Free lets others use the call's memory.
func (c *Call) Free() {
	if c.place != nil || c.waitStart != 0 { // something has panicked
		(*waiting)(c).leave()
		c.End(context.Background(), false)
	}
	c.Clear()
	clear(c.Unsatisfiable)
	c.Unsatisfiable = c.Unsatisfiable[:0]
	c.MayWait, c.WaitedBefore, c.engine, c.overrides, c.State, c.permitPause = nil, 0, nil, nil, Planned, 0
	if cap(c.keys) <= 16*terms.MaxKey { // others need no more
		callPool.Put(c)
	}
}

// Clear makes the call one without charges. It keeps its state, and its place in a line.
func (c *Call) Clear() {
	if len(c.claims) > 0 {
		c.release()
	}
	clear(c.Charges)
	clear(c.Tries)
	clear(c.openCharges)
	c.Charges, c.Tries, c.openCharges, c.keys, c.storeCall[0] = c.Charges[:0], c.Tries[:0], c.openCharges[:0],
		c.keys[:0], terms.Call{}
	c.Try = Try{State: c.State}
}

// Key appends the key of a charge by a plan to the call's memory.
func (c *Call) Key(p *plan.Plan, parts []byte) []byte {
	start := len(c.keys)
	c.keys = p.AppendKey(c.keys, parts)
	return c.keys[start:len(c.keys):len(c.keys)]
}

// tenancy copies for whom a limit is charged to the call's memory.
func (c *Call) tenancy(name []byte, weight uint32) terms.Tenancy {
	start := len(c.keys)
	c.keys = append(c.keys, name...)
	return terms.Tenancy{Tenant: c.keys[start:len(c.keys):len(c.keys)], Weight: int64(weight)}
}

// Adopt makes the charge of a lone limit that does not wait, and goes on with a try of it.
// Rechecks is what was found about that.
func (c *Call) Adopt(p *plan.Plan, parts []byte, cost, max int64, try *Try, rechecks bool) {
	c.Charges = append(c.Charges, Charge{Plan: p, Key: c.Key(p, parts), Cost: cost, Limits: 1, Max: max})
	c.Begin(context.Background(), 0, try.Arrived)
	c.Tries[0].Rechecks = rechecks
}

// AddFlag gives the call a flag, if it has none.
func (c *Tried) AddFlag() {
	if c.Flags == nil {
		c.Flags, c.Flag = c.issuer.Issue()
	}
}

// Waited returns how long the call had waited when its last try began.
func (c *Tried) Waited() time.Duration {
	if c.waitStart == 0 {
		return c.WaitedBefore
	}
	return c.WaitedBefore + max(0, c.Arrived-c.waitStart)
}

// Begin begins a try at an instant: nothing is known about any charge. A call that has waited since
// another one, which is 0 if it may not wait, does so no longer than its rules and its context say.
func (c *Call) Begin(ctx context.Context, since, arrived time.Duration) {
	c.Arrived, c.Flags = arrived, nil
	if len(c.claims) > 0 {
		c.release()
	}
	clear(c.Tries)
	c.Tries = c.Tries[:0]
	for i := range c.Charges {
		c.Tries = append(c.Tries, terms.Charge{})
		c.Charges[i].begin(&c.Tries[i])
	}
	if since != 0 {
		c.limitWait(ctx, since)
	}
}

// Known is [Engine.Local] for a [Call].
func (e *Engine) Known(ctx context.Context, c *Call) bool {
	known := e.Local(ctx, c.Charges, c.Tries, &c.Try)
	if known && !terms.Admitted(c.Tries) {
		e.refuse(c)
	}
	return known
}

// refuse gives units back that leases have admitted a call by, when the call is refused or was
// not decided. Limits in shadow mode have nothing to say of such a call, which they do not count:
// what they have found depends on who has refused it.
func (e *Engine) refuse(c *Call) {
	enforced := enforces(c.Tries)
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Source == rule.SourceLease && t.At != 0 {
			e.Leases.Cancel(c.Charges[i].Plan, t)
		}
		if enforced && t.Shadow {
			t.Result, t.Source = terms.Result{Allowed: true, Remaining: c.Charges[i].Plan.Capacity}, rule.SourceNone
		}
	}
}

// Ask has the store decide the open charges of a call. The error is nil if the call was
// decided, by the store or by failure policies. Otherwise it is the context's, or [Unavailable].
func (e *Engine) Ask(ctx context.Context, c *Call) error {
	open := c.open()
	if !enforces(open.Charges) && len(open.Charges) < len(c.Tries) && enforces(c.Tries) {
		return e.askShadows(ctx, c)
	}
	return e.applyAnswer(ctx, c, e.ask(ctx, c.storeCall[:]))
}

// open returns the call that the store is asked about: the charges that are still open.
func (c *Call) open() *terms.Call {
	charges := c.Tries
	for i := range c.Tries {
		if c.Tries[i].Source != rule.SourceNone {
			c.openCharges = c.openCharges[:0]
			for i := range c.Tries {
				if c.Tries[i].Source == rule.SourceNone {
					c.openCharges = append(c.openCharges, c.Tries[i])
				}
			}
			charges = c.openCharges
			break
		}
	}
	c.storeCall[0] = terms.Call{Charges: charges, Arrived: c.Arrived, Again: c.State != Planned}
	return &c.storeCall[0]
}

func (e *Engine) ask(ctx context.Context, calls []terms.Call) error {
	if e.Store == nil {
		return ErrNoStore
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.Store.Take(ctx, calls)
}

// applyAnswer applies the store's answer to what is open. Err is why it has decided no call at
// all, or nil.
func (e *Engine) applyAnswer(ctx context.Context, c *Call, err error) error {
	call := &c.storeCall[0]
	call.Err = cmp.Or(err, call.Err)
	if e.Refusals != nil {
		e.Refusals.Release(call.Charges)
		if call.Err != nil && ctx.Err() == nil {
			// A call that was refused before is refused until that time is over: a store
			// without an answer admits nobody sooner.
			e.Refusals.Call(call, clock.Now(), recall.Unanswered)
		}
	}
	if err = call.Err; err != nil && ctx.Err() != nil && enforces(call.Charges) {
		e.refuse(c)
		return ctx.Err()
	}
	known := false
	for i := range call.Charges {
		known = known || call.Charges[i].Recalled
		if err != nil {
			call.Charges[i].Err = err
		}
	}
	if len(c.openCharges) > 0 {
		c.fillIn()
	}
	if known {
		markRecalled(c.Tries)
	}
	undecided := false
	for i := range c.Tries {
		t := &c.Tries[i]
		undecided = undecided || t.Err != nil
		if t.Source == rule.SourceNone && t.Err == nil && !known {
			t.Source = rule.SourceStore
			if e.Leases != nil && c.Charges[i].Plan.Lease > 0 {
				e.Leases.Learn(c.Charges[i].Plan, t)
			}
			if t.Shadow {
				e.shadowPauses.end(c.Charges[i].Plan.Declared)
			}
		}
	}
	var failed error
	if undecided {
		failed = e.fail(ctx, c, err)
	}
	if failed != nil || !terms.Admitted(c.Tries) {
		e.refuse(c)
	}
	return failed
}

// fillIn copies the results of the open charges to their places in the call.
func (c *Call) fillIn() {
	n := 0
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == rule.SourceNone {
			t.Result, t.Err = c.openCharges[n].Result, c.openCharges[n].Err
			n++
		}
	}
}
