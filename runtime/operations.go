package runtime

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/private"
)

// Peek returns the decision that [Limiter.Take] would make now, without
// waiting and without charging anything. The error is non-nil if and only if
// there is no such decision: [ErrInvalidLimit], [ErrInvalidKey],
// [ErrUnavailable] or the context's. A denial is not an error here. The kill
// switch, failure policies, the process cap and a rule's Mode have no effect on
// the error.
func (l *Limiter) Peek(ctx context.Context, limits ...Limit) (Decision, error) {
	if l == nil {
		l = withoutStore
	}
	req := newRequest()
	defer req.free()
	for i := range limits {
		if err := limits[i].key.invalid(); err != nil {
			return Decision{}, err
		}
	}
	req.peeking = true
	if err := req.fill(ctx, l, limits); err != nil {
		return Decision{}, err
	}
	if len(req.charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	if req.denyUnsatisfiable() {
		d := Decision{Source: SourceNone}
		d.ofAll(req.charges)
		return d, nil
	}
	if l.store == nil {
		return Decision{}, unavailableError{errNoStore}
	}
	err := l.store.Peek(ctx, req.call[:])
	if err == nil {
		err = req.call[0].Err
	}
	if ctx.Err() != nil {
		return Decision{}, ctx.Err()
	}
	if err != nil {
		return Decision{}, unavailableError{private.Hide(err)}
	}
	for i := range req.charges {
		if c := &req.charges[i]; c.Err != nil {
			c.pass()
		}
	}
	if l.leases != nil {
		l.leases.peek(req.charges)
	}
	d := Decision{Source: SourceStore}
	d.ofAll(req.charges)
	return d, nil
}

// An Outcome is the result of one limit of [Limiter.TakeEach]: what
// [Limiter.Take] returns for it.
type Outcome struct {
	Decision
	Err error
}

// TakeEach decides each limit as a call of its own, in order, and in one request
// to Redis for every 128. A rule's Wait has no effect. The outcomes are in the
// order of the limits.
func (l *Limiter) TakeEach(ctx context.Context, limits ...Limit) []Outcome {
	if l == nil {
		l = withoutStore
	}
	outcomes := make([]Outcome, len(limits))
	if !l.Enabled() || isExempt(ctx) {
		for i := range outcomes {
			outcomes[i].Allowed = true
		}
		return outcomes
	}
	defer l.refusedEach(ctx, outcomes)
	reqs, paid := make([]*request, len(limits)), make([]*request, len(limits))
	arrived := instant()
	var calls []Call // for the store
	var asked []int  // the limit of each
	for i := range limits {
		req, out := newRequest(), &outcomes[i]
		defer req.free()
		req.call[0].arrived = arrived
		reqs[i] = req
		if out.Err = req.fill(ctx, l, limits[i:i+1]); out.Err != nil {
			continue
		}
		if req.denyUnsatisfiable() {
			out.Err = l.finish(ctx, req, limits[i:i+1], SourceNone, nil, &out.Decision)
			continue
		}
		if l.cap != nil {
			paid[i] = newRequest()
			defer paid[i].free()
			if out.Err = l.cap.admit(ctx, l, paid[i], &out.Decision); out.Err != nil {
				continue
			}
		}
		if len(req.charges) == 0 {
			out.Decision = Decision{Allowed: true}
			continue
		}
		if l.leases != nil && ctx.Err() == nil && l.leases.charge(&req.charges[0]) {
			out.Err = l.finish(ctx, req, limits[i:i+1], SourceLease, nil, &out.Decision)
			continue
		}
		calls, asked = append(calls, req.call[0]), append(asked, i)
	}
	if len(calls) == 0 {
		return outcomes
	}
	failed := l.ask(ctx, calls)
	for k, i := range asked {
		reqs[i].call[0].Err = calls[k].Err
		source, err := l.decidedBy(ctx, reqs[i], failed)
		if l.leases != nil && source == SourceStore {
			l.leases.learn(&reqs[i].charges[0])
		}
		outcomes[i].Err = l.finish(ctx, reqs[i], limits[i:i+1], source, err, &outcomes[i].Decision)
		if outcomes[i].Err != nil && l.cap != nil {
			l.cap.giveBack(paid[i])
		}
	}
	return outcomes
}

// Reset forgets everything about the key of one limit, in the store and in
// this process: its next call finds the limit whole.
func (l *Limiter) Reset(ctx context.Context, limit Limit) error {
	if l == nil {
		l = withoutStore
	}
	if err := limit.rule.checkPrefix(); err != nil {
		return err
	}
	if err := limit.key.invalid(); err != nil {
		return err
	}
	rule, _, _ := l.overridden(&limit)
	charges := []Charge{{Rule: rule, Key: appendKey(nil, l.namespace, rule, &limit.key)}}
	_ = l.local.Reset(ctx, charges) // never fails
	if l.store == nil {
		return errNoStore
	}
	defer l.permits.wakeKey(charges[0].Key)
	if l.leases != nil {
		l.leases.drop(charges[0].Key)
		defer l.leases.drop(charges[0].Key) // what was charged meanwhile may be forgotten
	}
	return private.Hide(l.store.Reset(ctx, charges))
}

// RedisKey returns the key in Redis under which a limit counts by the overrides in
// force, for tools and logs. It is empty for a rule that has neither a Prefix nor a
// Name.
func (l *Limiter) RedisKey(limit Limit) string {
	if limit.rule.checkPrefix() != nil {
		return ""
	}
	if l == nil {
		l = withoutStore
	}
	rule, _, _ := l.overridden(&limit)
	return string(appendKey(nil, l.namespace, rule, &limit.key))
}
