package decide

import (
	"cmp"
	"context"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// ErrNoStore is the error of a limiter without a store.
var ErrNoStore = private.New("the limiter has no store")

// Known is [Engine.Local] for a [Call].
func (e *Engine) Known(ctx context.Context, c *Call) bool {
	known := e.Local(ctx, c.Charges, c.Tries, &c.Try)
	if known && !terms.Admitted(c.Tries) {
		e.deny(c)
	}
	return known
}

// deny gives units back that leases have admitted a call by, when the call is denied or was
// not decided. Limits in shadow mode have nothing to say of such a call, which they do not count:
// what they have found depends on who has denied it.
func (e *Engine) deny(c *Call) {
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
	open := c.Open()
	if !enforces(open.Charges) && len(open.Charges) < len(c.Tries) && enforces(c.Tries) {
		return e.askShadows(ctx, c)
	}
	return e.applyAnswer(ctx, c, e.ask(ctx, c.storeCall[:]))
}

// Open returns the call that the store is asked about: the charges that are still open.
func (c *Call) Open() *terms.Call {
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
	c.storeCall[0] = terms.Call{Charges: charges, Arrived: c.Arrived, Again: c.Again}
	return &c.storeCall[0]
}

// DecideEach decides several calls, and asks the store about all that this process cannot decide
// in one request. It returns the error of each, as Ask does.
func (e *Engine) DecideEach(ctx context.Context, each []*Call) []error {
	var open []int
	var calls []terms.Call // of those
	for i, c := range each {
		if !e.Known(ctx, c) {
			open, calls = append(open, i), append(calls, *c.Open())
		}
	}
	errs := make([]error, len(each))
	if len(open) == 0 {
		return errs
	}
	failed := e.ask(ctx, calls)
	for k, i := range open {
		each[i].storeCall[0].Err = calls[k].Err
		errs[i] = e.applyAnswer(ctx, each[i], failed)
	}
	return errs
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

// askShadows has the store decide limits in shadow mode of a call whose others are admitted
// already, and waits no longer than [redis.ShadowTime].
func (e *Engine) askShadows(ctx context.Context, c *Call) error {
	soon, cancel := context.WithTimeoutCause(ctx, redis.ShadowTime, redis.LateError(redis.ShadowTime))
	defer cancel()
	err := e.ask(soon, c.storeCall[:]) // before the call's own error is read, which it sets
	if err = cmp.Or(err, c.storeCall[0].Err); err != nil {
		if soon.Err() != nil {
			err = context.Cause(soon)
		}
		for i := range c.storeCall[0].Charges {
			c.storeCall[0].Charges[i].Err = err
		}
	}
	c.storeCall[0].Err = nil
	return e.applyAnswer(ctx, c, nil)
}

// applyAnswer applies the store's answer to [Call.Open]. Err is why it has decided no call at
// all, or nil.
func (e *Engine) applyAnswer(ctx context.Context, c *Call, err error) error {
	call := &c.storeCall[0]
	call.Err = cmp.Or(err, call.Err)
	if e.Denials != nil {
		e.Denials.Release(call.Charges)
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
		e.deny(c)
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
