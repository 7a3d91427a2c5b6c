package runtime

import (
	"context"
	"errors"

	"github.com/rategen/rategen/runtime/internal/private"
)

// WithReplicas sets how many processes share the limits. While the store gives
// no answer, each of them admits an n-th of the max and burst of a rule that
// fails locally, rounded down but at least 1: together they admit no more than
// the rule does, or n if that is more. A call that costs more than that share
// takes all of it. The default is 1.
func WithReplicas(n int) Option {
	return func(l *Limiter) { l.replicas = int64(max(1, n)) }
}

var errNoStore = private.New("the limiter has no store")

// failed decides a request that the store did not by the failure policies: a
// rule that fails closed refuses it, rules that fail locally are counted in this
// process, the others admit it.
func (l *Limiter) failed(ctx context.Context, req *request, cause error) (Source, error) {
	var local Call
	var shared []*Charge // those of the call that local has a share of
	var closed *Rule
	req.pass()
	for i := range req.call[0].Charges {
		c := &req.call[0].Charges[i]
		c.source = SourceFailure
		policy := l.policy(c.Rule)
		l.events.failure(ctx, c.Rule, policy, cause)
		switch policy {
		case FailClosed:
			closed = c.Rule
		case FailLocal:
			local.Charges, shared = append(local.Charges, l.share(*c)), append(shared, c)
		}
	}
	switch {
	case closed != nil:
		return SourceFailure, unavailableError{cause}
	case len(local.Charges) == 0:
		return SourceFailure, nil
	}
	calls := []Call{local}
	if err := errors.Join(l.local.Take(ctx, calls), calls[0].Err); err != nil {
		return SourceFailure, unavailableError{err}
	}
	for i, c := range shared {
		c.Rule, c.Max, c.Result, c.source = local.Charges[i].Rule, local.Charges[i].Max, local.Charges[i].Result, SourceLocal
	}
	return SourceLocal, nil
}

// policy returns the failure policy of a rule. A shadow limit refuses nobody, so
// it never fails closed.
func (l *Limiter) policy(r *Rule) FailurePolicy {
	policy := r.Fail
	if policy == FailDefault {
		policy = l.fail
	}
	if policy == FailDefault || policy == FailClosed && !r.Mode.Denies() {
		return FailOpen
	}
	return policy
}

// share returns a charge with this process's share of its limit.
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

// A share is one process's part of a rule.
type share struct{ of, part *Rule }

// shareOf returns a rule with this process's part of its burst. It returns the
// same one each time until an override changes the rule.
func (l *Limiter) shareOf(r *Rule) *Rule {
	declared := r.declaration()
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
