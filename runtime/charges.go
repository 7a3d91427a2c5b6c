package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/turn"
)

// A request is the memory that a call with any limits needs on its way to the store and back.
// It is pooled, so that a call allocates nothing.
type request struct {
	turn.Call
	peeking   bool            // nothing is decided
	tentative bool            // is told at once where a limit has no room, and nobody else is
	never     []decide.Charge // of limits in shadow mode that are left out since they never fit
	shelf     settle.Shelf
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

func (r *request) free() {
	r.Leave(false)
	r.End(context.Background(), false) // where something has panicked
	r.Clear()
	clear(r.never)
	r.never = r.never[:0]
	r.peeking, r.tentative, r.Again, r.Permits, r.Listener, r.Overrides = false, false, false, nil, nil, nil
	if !r.Large() {
		requests.Put(r)
	}
}

// fill turns limits into charges by what holds now. It leaves out what needs no decision: a
// limit that is switched off, or at no cost if no key can be blocked or held, one whose key is
// invalid if its rule admits that, and a shadow limit that is invalid, could never admit the
// call or has the key of another limit. The error is [ErrInvalidLimit], or [ErrInvalidKey] if
// the rule refuses invalid keys.
func (r *request) fill(ctx context.Context, l *Limiter, limits []Limit) error {
	if len(limits) > MaxLimits {
		return fmt.Errorf("%w: %d limits on one call, the maximum is %d", ErrInvalidLimit, len(limits), MaxLimits)
	}
	r.Clear()
	r.Permits, r.Listener, r.Polls, r.Overrides = &l.permits, l.events, l.enabled != nil, l.overrides.Load()
	for i := range limits {
		if err := r.add(ctx, l, &limits[i], uint8(i)); err != nil {
			return err
		}
	}
	return nil
}

// silent reports whether nobody wants to hear what is wrong with the limits: nothing is
// decided, or it was said before.
func (r *request) silent() bool { return r.peeking || r.Again }

// add adds the charge for a limit, unless it needs no decision.
func (r *request) add(ctx context.Context, l *Limiter, limit *Limit, index uint8) error {
	p, on, err := l.planOf(limit)
	if err != nil {
		if p != nil && p.Terms.Shadow && !r.peeking {
			r.failed(ctx, l, p, err)
			return nil
		}
		return err
	}
	if !on {
		return nil
	}
	if limit.cost == 0 && !r.silent() && p.Sample != nil && p.Sample.Free() {
		l.events.log.Find(report.NothingCharged, p.Name, "")
	}
	if limit.cost == 0 && !p.RefusesAll() {
		return nil
	}
	if p.Terms.Shadow && !r.peeking {
		if err := l.engine.Resting(p, clock.Now()); err != nil {
			r.failed(ctx, l, p, err)
			return nil
		}
	}
	if err := limit.key.invalid(); err != nil {
		if counted, err := r.addInvalid(ctx, l, p, err); !counted {
			return err
		}
	}
	charge := decide.Charge{Plan: p, Cost: limit.cost, Limits: 1 << index, Own: limit.max, EmptyPart: limit.key.parts.HasEmpty(), InvalidKey: limit.key.invalid() != nil}
	if charge.EmptyPart && !r.silent() {
		l.events.log.EmptyPart(ruleOf(p).logged())
	}
	if p.Terms.Shadow && p.Unsatisfiable(limit.cost) {
		if !r.silent() {
			r.never = append(r.never, charge)
		}
		return nil
	}
	charge.Key = r.Key(p, limit.key.bytes())
	if same := r.Place(charge, l.sharedKey); same != nil {
		return l.join(same, &charge)
	}
	return nil
}

// ended tells of a call that is over what only its end says. Err is why it does not go on, or nil.
func (r *request) ended(ctx context.Context, l *Limiter, err error) {
	r.End(ctx, err == nil)
	l.events.never(ctx, r.never, err)
}

// addInvalid reports whether a limit counts whose key is invalid. Otherwise it is left out, or
// there is an error.
func (r *request) addInvalid(ctx context.Context, l *Limiter, p *plan.Plan, err error) (bool, error) {
	rule, policy := ruleOf(p), plan.Closed
	switch {
	case rule.Invalid == InvalidShare && p.Max > 0:
		if !r.silent() {
			l.events.log.InvalidKey(rule.logged(), err)
		}
		return true, nil
	case rule.Invalid == InvalidAdmit || p.Terms.Shadow:
		policy = plan.Open
	}
	if !r.silent() {
		l.events.failure(ctx, p, policy, err)
	}
	if policy == plan.Open && !r.peeking {
		return false, nil
	}
	return false, fmt.Errorf("rule %q: %w", p.Name, err)
}

// keyError returns why the limit has no key, or nil.
func (l *Limit) keyError() error {
	if l.rule != nil && l.rule.Invalid == InvalidShare {
		return nil
	}
	return l.key.invalid()
}

// failed reports why a limit is left out.
func (r *request) failed(ctx context.Context, l *Limiter, p *plan.Plan, err error) {
	if !r.silent() {
		l.events.failure(ctx, p, p.Fail, err)
	}
}

// sharedKey reports that a limit in shadow mode is left out because another one has its key.
func (l *Limiter) sharedKey(shadow, other *plan.Plan) {
	l.events.log.SharedKey(ruleOf(shadow).logged(), ruleOf(other).logged())
}

// join makes a charge that of another one's limit, too. Both have one key. It then costs what
// both do, but no more than the limit could ever admit, so that a call may name a key twice. The
// lower max holds.
func (l *Limiter) join(c, o *decide.Charge) error {
	first, other := ruleOf(c.Plan), ruleOf(o.Plan)
	if !c.Plan.Numbers.CountsAs(&o.Plan.Numbers) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key, and count in different ways: give them prefixes of their own", ErrInvalidLimit, first.Name, other.Name)
	}
	if o.Plan.Max < c.Plan.Max {
		c.Plan = l.plan(first, o.Plan.Max, c.Plan.Period)
	}
	c.Cost = max(c.Cost, o.Cost, min(c.Cost+o.Cost, c.Plan.Capacity))
	c.Limits |= o.Limits
	return nil
}

// An inForce says what is in force for limits at present.
type inForce struct {
	*Limiter
	limits []Limit
}

// inForce returns that of a copy of limits, which are on their caller's stack.
func (l *Limiter) inForce(limits []Limit) turn.Now { return &inForce{l, slices.Clone(limits)} }

// Overrides implements [turn.Now].
func (f *inForce) Overrides() turn.Overrides { return f.overrides.Load() }

// Plan implements [turn.Now].
func (f *inForce) Plan(i int) (*plan.Plan, bool, error) { return f.planOf(&f.limits[i]) }
