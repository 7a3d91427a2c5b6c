package decide

import (
	"cmp"
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/failure"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/route"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// ErrNoStore is the error of a limiter without a store.
var ErrNoStore = private.New("the limiter has no store")

// A Closed error is the error of a call that was not decided and has a rule that fails
// closed.
type Closed struct{ Cause error }

func (c Closed) Error() string { return c.Cause.Error() }

// Known is [Engine.Local] for a [Call].
func (e *Engine) Known(ctx context.Context, c *Call) bool {
	known := e.Local(ctx, c.Charges, c.Tries, &c.Try)
	if known && !terms.Admitted(c.Tries) {
		e.deny(c)
	}
	return known
}

// deny gives units back that leases have admitted a call by, when the call is denied or was
// not decided.
func (e *Engine) deny(c *Call) {
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == terms.ByLease && t.At != 0 {
			e.Leases.Release(c.Charges[i].Plan, t)
		}
	}
}

// Ask has the store decide the open charges of a call. The error is nil if the call was
// decided, by the store or by failure policies. Otherwise it is the context's, or [Closed].
func (e *Engine) Ask(ctx context.Context, c *Call) error {
	open := c.Open()
	if !enforces(open.Charges) && len(open.Charges) < len(c.Tries) && enforces(c.Tries) {
		return e.askBeside(ctx, c)
	}
	return e.answered(ctx, c, e.ask(ctx, c.open[:]))
}

// Open returns the call that the store is asked about: the charges that are still open.
func (c *Call) Open() *terms.Call {
	charges := c.Tries
	for i := range c.Tries {
		if c.Tries[i].Source != terms.Nobody {
			c.left = c.left[:0]
			for i := range c.Tries {
				if c.Tries[i].Source == terms.Nobody {
					c.left = append(c.left, c.Tries[i])
				}
			}
			charges = c.left
			break
		}
	}
	c.open[0] = terms.Call{Charges: charges, Arrived: c.Arrived, Again: c.Again}
	return &c.open[0]
}

// AskEach is Ask for several calls in one request to the store. It returns the error of each.
func (e *Engine) AskEach(ctx context.Context, each []*Call) []error {
	if len(each) == 0 {
		return nil
	}
	calls, errs := make([]terms.Call, len(each)), make([]error, len(each))
	for i, c := range each {
		calls[i] = *c.Open()
	}
	failed := e.ask(ctx, calls)
	for i, c := range each {
		c.open[0].Err = calls[i].Err
		errs[i] = e.answered(ctx, c, failed)
	}
	return errs
}

// Peek begins a try of each of some calls, and finds how it would be decided if it came alone
// now.
func (e *Engine) Peek(ctx context.Context, each ...*Call) error {
	var open []*Call
	for _, c := range each {
		// The store is not asked about a call that can never be admitted, unless a limit keeps counts of periods.
		if c.Begin(ctx, time.Time{}, clock.Now()); !Unsatisfiable(c.Charges) || len(c.Tries) == 1 && c.Tries[0].Keep > 0 {
			open = append(open, c)
		}
	}
	if len(open) > 0 {
		if err := e.peek(ctx, open); err != nil {
			return err
		}
	}
	for _, c := range each {
		if Unsatisfiable(c.Charges) {
			never(c.Charges, c.Tries)
		}
	}
	return nil
}

// peek is Peek for what the store is asked.
func (e *Engine) peek(ctx context.Context, each []*Call) error {
	if e.Store == nil {
		return ErrNoStore
	}
	calls := make([]terms.Call, len(each))
	for i, c := range each {
		calls[i] = *c.Open()
	}
	err := e.Store.Peek(ctx, calls)
	for i := range calls {
		err = cmp.Or(err, calls[i].Err)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	for _, c := range each {
		for i := range c.Tries {
			p, t := c.Charges[i].Plan, &c.Tries[i]
			if t.Source = terms.ByStore; t.Err != nil {
				t.Result, t.Err = terms.Result{Allowed: true, Remaining: p.Capacity}, nil
			}
			if e.Leases != nil {
				e.Leases.Peek(p, t)
			}
		}
	}
	return nil
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

// askBeside has the store decide limits in shadow mode of a call whose others are admitted
// already, and waits no longer than [route.ShadowTime].
func (e *Engine) askBeside(ctx context.Context, c *Call) error {
	soon, cancel := context.WithTimeoutCause(ctx, route.ShadowTime, batch.LateError(route.ShadowTime))
	defer cancel()
	err := e.ask(soon, c.open[:]) // before the call's own error is read, which it sets
	if err = cmp.Or(err, c.open[0].Err); err != nil {
		if soon.Err() != nil {
			err = context.Cause(soon)
		}
		for i := range c.open[0].Charges {
			c.open[0].Charges[i].Err = err
		}
	}
	c.open[0].Err = nil
	return e.answered(ctx, c, nil)
}

// answered applies the store's answer to [Call.Open]. Err is why it has decided no call at
// all, or nil.
func (e *Engine) answered(ctx context.Context, c *Call, err error) error {
	call := &c.open[0]
	if call.Err = cmp.Or(err, call.Err); e.Denials != nil {
		e.Denials.Release(call)
		if call.Err != nil && ctx.Err() == nil {
			// A call that was denied before is denied until that time is over: a store
			// without an answer admits nobody sooner.
			e.Denials.Call(call, clock.Now(), denials.Unanswered)
		}
	}
	if err = call.Err; err != nil && ctx.Err() != nil && enforces(call.Charges) {
		e.deny(c)
		return ctx.Err()
	}
	known := false
	for i := range call.Charges {
		known = known || call.Charges[i].Recalled
		if err != nil {
			call.Charges[i].Err = err
		}
	}
	if len(c.left) > 0 {
		c.fillIn()
	}
	if known {
		recalled(c.Tries)
	}
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == terms.Nobody && t.Err == nil && !known {
			t.Source = terms.ByStore
			if e.Leases != nil && c.Charges[i].Plan.Lease > 0 {
				e.Leases.Learn(c.Charges[i].Plan, t)
			}
			if t.Shadow {
				e.rests.end(c.Charges[i].Plan.Declared)
			}
		}
	}
	failed := e.fail(ctx, c, err)
	if failed != nil || !terms.Admitted(c.Tries) {
		e.deny(c)
	}
	return failed
}

// fillIn copies the results of the open charges to their places in the call.
func (c *Call) fillIn() {
	n := 0
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == terms.Nobody {
			t.Result, t.Err = c.left[n].Result, c.left[n].Err
			n++
		}
	}
}

// fail applies the failure policies to the charges that were not decided. Cause is why the
// call was not decided. If it is nil only charges in shadow mode were not; they are admitted.
func (e *Engine) fail(ctx context.Context, c *Call, cause error) error {
	gone := ctx.Err() != nil // no failure of the store
	var closed error
	alone := 0
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Err == nil {
			continue
		}
		p, err := c.Charges[i].Plan, private.Hide(t.Err)
		policy := p.Fail
		if cause == nil || gone {
			policy = plan.Open
		}
		t.Result, t.Err, t.Source = terms.Result{Allowed: true, Remaining: p.Capacity}, nil, terms.ByFailure
		if gone {
			if cause != nil {
				t.Source = terms.Nobody
			}
			continue
		}
		e.Failed(ctx, p, policy, err)
		switch {
		case policy == plan.Closed:
			closed = Closed{err}
		case policy == plan.Local:
			t.Source = terms.ByLocal
			alone++
		case cause == nil && ofOneKey(err):
			e.rests.begin(p.Declared, err)
		}
	}
	if closed == nil && alone > 0 {
		closed = e.decideAlone(ctx, c)
	}
	for i := range c.Tries {
		if t := &c.Tries[i]; closed != nil && t.Source == terms.ByLocal {
			t.Source = terms.ByFailure
		}
	}
	return closed
}

// ofOneKey reports whether an error may be the fault of one limit of many.
func ofOneKey(err error) bool {
	class := failure.ClassOf(err)
	return class == failure.Auth || class == failure.TryAgain
}

// decideAlone decides charges by this process's share of their limits. It charges another
// store than leases do, so that the units of leases are not given back.
func (e *Engine) decideAlone(ctx context.Context, c *Call) error {
	var asked []terms.Charge
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == terms.ByLocal {
			share := c.Charges[i].Plan.Share
			var one terms.Charge
			share.Charge(&one, t.Key, min(t.Cost, share.Capacity))
			if one.Wait = t.Wait; share.Queues() {
				one.More = t.Wait.Microseconds()
			}
			asked = append(asked, one)
		}
	}
	calls := []terms.Call{{Charges: asked}}
	if err := cmp.Or(e.Alone.Take(ctx, calls), calls[0].Err); err != nil {
		return Closed{err}
	}
	admitted := terms.Admitted(calls[0].Charges)
	for i := range c.Tries {
		switch t := &c.Tries[i]; {
		case t.Source == terms.ByLocal:
			t.Terms, t.Result, asked = asked[0].Terms, asked[0].Result, asked[1:]
		case t.Source == terms.ByLease && admitted:
			t.At = 0
		}
	}
	return nil
}

// Resting returns why a plan's limit in shadow mode is left out of calls now, or nil.
func (e *Engine) Resting(p *plan.Plan, now time.Duration) error {
	return e.rests.cause(p.Declared, now)
}
