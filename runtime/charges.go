package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/rule"
)

// A request is the memory that a call with any limits needs on its way to the store and back.
// It is pooled, so that a call allocates nothing.
type request struct {
	decide.Call
	peek          bool            // nothing is decided
	tentative     bool            // of a Meter: without room it has [meter.ErrNoRoom], of which nobody else is told
	mayWait       func() bool     // of a call that waits elsewhere: a denial is [meter.ErrNoRoom] if that is true; or nil
	unsatisfiable []decide.Charge // of limits in shadow mode that are left out since they never fit
}

var requestPool = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requestPool.Get().(*request) }

func (r *request) free() {
	r.Leave()
	r.End(context.Background(), false) // where something has panicked
	r.Clear()
	clear(r.unsatisfiable)
	r.unsatisfiable = r.unsatisfiable[:0]
	r.peek, r.tentative, r.mayWait, r.Again = false, false, nil, false
	r.Setting, r.WaitedBefore = decide.Setting{}, 0
	if !r.Large() {
		requestPool.Put(r)
	}
}

// fill turns limits into charges by what holds now. It leaves out what needs no decision: a
// limit that is switched off, or at no cost if no key can be blocked or held, one whose key is
// invalid if its rule admits that, and a shadow limit that is invalid, could never admit the
// call or has the key of another limit. The error is [ErrInvalidLimit], or [ErrInvalidKey] if
// the rule refuses invalid keys.
func (r *request) fill(ctx context.Context, l *Limiter, limits []Limit) error {
	if len(limits) > rule.MaxLimits {
		return fmt.Errorf("%w: %d limits on one call, the maximum is %d", ErrInvalidLimit, len(limits), rule.MaxLimits)
	}
	r.Clear()
	r.Setting = decide.Setting{
		Lines: &l.ledger.Lines, Listener: l.events, Plans: &l.plans, Overrides: l.plans.Overrides(), Switch: l,
		Polls: l.enabled != nil, Closed: l.closed,
	}
	for i := range limits {
		if err := r.add(ctx, l, &limits[i], uint8(i)); err != nil {
			return err
		}
	}
	return nil
}

// silent reports whether nobody wants to hear what is wrong with the limits: nothing is
// decided, or it was said before.
func (r *request) silent() bool { return r.peek || r.Again }

// add adds the charge for a limit, unless it needs no decision.
func (r *request) add(ctx context.Context, l *Limiter, limit *Limit, index uint8) error {
	p, on, err := l.plans.Plan(limit)
	if err != nil {
		if p != nil && p.Terms.Shadow && !r.peek {
			r.reportFailure(ctx, l, p, err)
			return nil
		}
		return err
	}
	if !on {
		return nil
	}
	if limit.Cost == 0 && !r.silent() && p.Sample != nil && p.Sample.Free() {
		l.events.log.Find(report.NothingCharged, p.Name, "")
	}
	if limit.Cost == 0 && !p.RefusesAll() {
		return nil
	}
	if p.Terms.Shadow && !r.peek {
		if err := l.engine.PauseCause(p, clock.Now()); err != nil {
			r.reportFailure(ctx, l, p, err)
			return nil
		}
	}
	if err := rule.PartsOf(limit).Err(); err != nil {
		if counted, err := r.addInvalid(ctx, l, p, err); !counted {
			return err
		}
	}
	charge := decide.Charge{Plan: p, Cost: limit.Cost, Limits: 1 << index, DeclaredMax: limit.Max,
		EmptyPart: rule.PartsOf(limit).HasEmpty(), InvalidKey: rule.PartsOf(limit).Err() != nil}
	if charge.EmptyPart && !r.silent() {
		l.events.log.EmptyPart(p.Declared)
	}
	if p.Terms.Shadow && p.Unsatisfiable(limit.Cost) {
		if !r.silent() {
			r.unsatisfiable = append(r.unsatisfiable, charge)
		}
		return nil
	}
	charge.Key = r.Key(p, rule.PartsOf(limit).Bytes())
	if same := r.Place(charge, l.sharedKey); same != nil {
		return l.joinCharges(same, &charge)
	}
	return nil
}

// reportEnd reports what is known only when a call is over: that its wait has ended, and which shadow
// limits could never admit it. Err is why it does not go on, or nil.
func (r *request) reportEnd(ctx context.Context, l *Limiter, err error) {
	r.End(ctx, err == nil)
	l.events.reportUnsatisfiable(ctx, r.unsatisfiable, err)
}

// addInvalid reports whether a limit counts whose key is invalid. Otherwise it is left out, or
// there is an error.
func (r *request) addInvalid(ctx context.Context, l *Limiter, p *plan.Plan, err error) (bool, error) {
	policy := FailClosed
	switch {
	case p.Rule.Invalid == rule.InvalidShare && p.Max > 0:
		if !r.silent() {
			l.events.log.InvalidKey(p.Declared, err)
		}
		return true, nil
	case p.Rule.Invalid == rule.InvalidAdmit || p.Terms.Shadow:
		policy = FailOpen
	}
	if !r.silent() {
		l.events.reportFailure(ctx, p, policy, err)
	}
	if policy == FailOpen && !r.peek {
		return false, nil
	}
	return false, fmt.Errorf("rule %q: %w", p.Name, err)
}

// keyError returns why the limit has no key, or nil.
func keyError(l *Limit) error {
	if l.Rule != nil && l.Rule.Invalid == rule.InvalidShare {
		return nil
	}
	return rule.PartsOf(l).Err()
}

// reportFailure reports why a limit is left out.
func (r *request) reportFailure(ctx context.Context, l *Limiter, p *plan.Plan, err error) {
	if !r.silent() {
		l.events.reportFailure(ctx, p, p.Fail, err)
	}
}

// sharedKey reports that a limit in shadow mode is left out because another one has its key.
func (l *Limiter) sharedKey(shadow, other *plan.Plan) {
	l.events.log.SharedKey(shadow.Declared, other.Declared)
}

// joinCharges adds o to a charge on the same key. The charge then costs what both do, but no more
// than the limit could ever admit, so that a call may name a key twice. The lower max holds.
func (l *Limiter) joinCharges(c, o *decide.Charge) error {
	first, other := c.Plan.Rule, o.Plan.Rule
	if !c.Plan.Numbers.CountsAs(o.Plan.Numbers) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key, and count in different ways: give them prefixes of their own",
			ErrInvalidLimit, first.Name, other.Name)
	}
	if o.Plan.Max < c.Plan.Max {
		c.Plan = l.plans.AtMax(c.Plan, o.Plan.Max)
	}
	c.Cost = max(c.Cost, o.Cost, min(c.Cost+o.Cost, c.Plan.Capacity))
	c.Limits |= o.Limits
	return nil
}
