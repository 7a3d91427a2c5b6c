package runtime

import (
	"context"
	"errors"
	"fmt"
)

// WithReplicas tells a limiter that n processes share its limits. While the
// store gives no answer, each of them admits an n-th of the max and burst of a
// rule that fails locally, rounded down but at least 1: together they admit no
// more than the rule says, or n if that is more. A call that costs more than
// that share takes all of it. The default is 1.
func WithReplicas(n int) Option {
	return func(l *Limiter) { l.replicas = int64(max(1, n)) }
}

var errNoStore = errors.New("the limiter has no store")

// failed lets the failure policies decide a request that the store did not: a
// rule that fails closed refuses it, rules that fail locally have a say each,
// the others let it through.
func (l *Limiter) failed(ctx context.Context, req *request, cause error) (Source, error) {
	var local Call
	var closed *Rule
	for i := range req.charges {
		c := &req.charges[i]
		c.Result = Result{Allowed: true, Remaining: c.Max}
		policy := l.policy(c.Rule)
		l.events.failure(c.Rule, policy, cause)
		switch policy {
		case FailClosed:
			closed = c.Rule
		case FailLocal:
			local.Charges = append(local.Charges, l.share(*c))
		}
	}
	switch {
	case closed != nil:
		return SourceFailure, fmt.Errorf("%w: rule %q: %w", ErrUnavailable, closed.Name, cause)
	case len(local.Charges) == 0:
		return SourceFailure, nil
	}
	calls := []Call{local}
	if err := errors.Join(l.local.Take(ctx, calls), calls[0].Err); err != nil {
		return SourceFailure, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for i := range local.Charges {
		c, part := req.chargeOf(local.Charges[i].limit), &local.Charges[i]
		req.whole = append(req.whole, *c)
		c.Result, c.Max, c.Rule = part.Result, part.Max, part.Rule
	}
	return SourceLocal, nil
}

func (l *Limiter) policy(r *Rule) FailurePolicy {
	if r.Fail != FailDefault {
		return r.Fail
	}
	if l.fail != FailDefault {
		return l.fail
	}
	return FailOpen
}

// unshare undoes what failed has made of the request, before it is decided once
// more.
func (r *request) unshare() {
	for i := range r.whole {
		c := r.chargeOf(r.whole[i].limit)
		c.Max, c.Rule = r.whole[i].Max, r.whole[i].Rule
	}
	r.whole = r.whole[:0]
}

// share returns a charge as it is to this process alone.
func (l *Limiter) share(c Charge) Charge {
	if l.replicas > 1 {
		c.Max = max(1, c.Max/l.replicas)
		if c.Rule.Burst > 0 {
			c.Rule = l.shareOf(c.Rule)
		}
		c.Cost = min(c.Cost, c.capacity())
	}
	return c
}

// A share is what one process has of a rule.
type share struct{ of, part *Rule }

// shareOf returns a rule with this process's part of its burst, the same one
// each time until an override changes the rule.
func (l *Limiter) shareOf(r *Rule) *Rule {
	declared := r
	if r.declared != nil {
		declared = r.declared
	}
	if found := l.shares.of(declared); found != nil && found.of == r {
		return found.part
	}
	part := *r
	part.Burst, part.declared = max(1, r.Burst/l.replicas), declared
	if s := (&share{r, &part}); !l.shares.keep(declared, s) {
		l.shares.renew(declared, s)
	}
	return &part
}
