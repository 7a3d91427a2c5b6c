package decide

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Peek begins a try of each of some calls, and finds how it would be decided if it came alone
// now. The error is nil, the context's, or [Unavailable] if the store has not answered.
func (e *Engine) Peek(ctx context.Context, each ...*Call) error {
	var open []*Call
	for _, c := range each {
		// The store is not asked about a call that can never be admitted, unless a limit keeps counts of periods.
		c.Begin(ctx, 0, clock.Now())
		if !Unsatisfiable(c.Charges) || len(c.Tries) == 1 && c.Tries[0].Keep > 0 {
			open = append(open, c)
		}
	}
	if len(open) > 0 {
		if err := e.peek(ctx, open); err != nil && ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return Unavailable{Cause: private.Hide(err)}
		}
	}
	for _, c := range each {
		if Unsatisfiable(c.Charges) {
			refuseForever(c.Charges, c.Tries)
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
		calls[i] = *c.open()
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
			t.Source = rule.SourceStore
			if t.Err != nil {
				t.Result, t.Err = terms.Result{Allowed: true, Remaining: p.Capacity}, nil
			}
			if e.Leases != nil {
				e.Leases.Peek(p, t)
			}
		}
	}
	return nil
}

// Reset forgets everything about a key, in the store and in this process.
func (e *Engine) Reset(ctx context.Context, p *plan.Plan, key []byte) error {
	charges := make([]terms.Charge, 1)
	p.Charge(&charges[0], key, 1)
	_ = e.Alone.Reset(ctx, charges) // never fails
	if e.Store == nil {
		return ErrNoStore
	}
	if e.Leases != nil {
		e.Leases.Drop(key)
		defer e.Leases.Drop(key) // what was charged meanwhile may be forgotten
	}
	return private.Hide(e.Store.Reset(ctx, charges))
}

// Hold holds a key for a time, from now on by the clock of the store, or releases it if that is 0.
func (e *Engine) Hold(ctx context.Context, p *plan.Plan, key []byte, d time.Duration) error {
	charges := make([]terms.Charge, 1)
	p.Charge(&charges[0], key, 0)
	charges[0].At = d.Microseconds()
	_ = e.Alone.Hold(ctx, slices.Clone(charges)) // for calls that the store will not decide
	if e.Store == nil {
		return ErrNoStore
	}
	return private.Hide(errors.Join(e.Store.Hold(ctx, charges), charges[0].Err))
}

// DecideEach decides several calls, and asks the store about all that this process cannot decide
// in one request. It returns the error of each, as Ask does.
func (e *Engine) DecideEach(ctx context.Context, each []*Call) []error {
	var open []int
	var calls []terms.Call // of those
	for i, c := range each {
		if !e.Known(ctx, c) {
			open, calls = append(open, i), append(calls, *c.open())
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
