package runtime

import "context"

// WithProcessCap puts a limit in memory before the store: r bounds how many
// calls of this process, whatever their rules and keys, are let through, and so
// protects it and the store when one node is flooded. It is always in force,
// also while the store gives no answer. A call that is not let through after
// all gives its charge back. Each call costs 1 and r's Wait has no effect;
// overrides, a [Scaler] and r's Mode have theirs. A call over the cap gets a
// [*LimitedError] with r's name, and its decision the source [SourceProcess].
func WithProcessCap(r *Rule) Option {
	return func(l *Limiter) { l.cap = &processCap{rule: r, store: NewMemoryStore(WithMaxKeys(1))} }
}

// A processCap is what all calls of a limiter must pass first.
type processCap struct {
	rule  *Rule
	store *MemoryStore
}

// A passage is a charge to a processCap; At is 0 if there was none.
type passage Charge

// admit charges one call to the cap. The error is non-nil if and only if the
// call may not go on.
func (p *processCap) admit(l *Limiter) (passage, Decision, error) {
	req := newRequest()
	defer req.free()
	limit := [...]Limit{p.rule.Limit(nil)}
	if err := req.fill(l, limit[:]); err != nil || len(req.charges) == 0 {
		return passage{}, Decision{}, err
	}
	begin := l.events.begin()
	if !req.hopeless() {
		_ = p.store.Take(context.Background(), req.call[:]) // one call, with an error of its own
	}
	decision, err := l.conclude(req, SourceProcess, req.call[0].Err, begin)
	return passage(req.charges[0]), decision, err
}

// giveBack undoes admit.
func (p *processCap) giveBack(l *Limiter, paid passage) {
	if paid.At != 0 {
		paid.Key = appendKey(nil, l.namespace, paid.Rule, new(Key))
		_ = p.store.Refund(context.Background(), []Charge{Charge(paid)})
	}
}
