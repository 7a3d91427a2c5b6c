package runtime

import (
	"context"
	"time"
)

// WithProcessCap puts a limit in memory before the store: r bounds how many
// calls of this process, whatever their rules and keys, are let through, and so
// protects it and the store when one node is flooded. It is always in force,
// also while the store gives no answer, and for calls whose own limits are
// switched off, cost nothing or have an invalid key; only the limiter's kill
// switch ends it too.
//
// Each call costs 1. One that is not let through after all gives its charge
// back; a [Limiter.Refund] does not. Overrides, a [Scaler] and r's Mode have
// their effect, r's Wait has none. A call over the cap gets a [*LimitedError]
// with r's name, and its decision the source [SourceProcess]. [Limiter.Peek]
// does not look at the cap. A nil r is no cap.
func WithProcessCap(r *Rule) Option {
	return func(l *Limiter) {
		if l.cap = nil; r == nil {
			return
		}
		if r.Wait > 0 {
			once := *r
			once.Wait = 0
			r = &once
		}
		l.cap = &processCap{rule: r, store: NewMemoryStore(WithMaxKeys(1))}
	}
}

// A processCap is what all calls of a limiter must pass first.
type processCap struct {
	rule  *Rule
	store *MemoryStore
}

// takeCapped does what take does for a call that the cap lets through. One that
// can never be admitted does not come that far, and one that nothing else
// limits no further.
func (l *Limiter) takeCapped(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	if req.hopeless() {
		return l.take(ctx, req, limits, d)
	}
	paid := newRequest()
	defer paid.free()
	if err := l.cap.admit(l, paid, d); err != nil {
		return err
	}
	if len(req.charges) == 0 {
		*d = Decision{Allowed: true}
		return nil
	}
	err := l.take(ctx, req, limits, d)
	if err != nil {
		l.cap.giveBack(paid)
	}
	return err
}

// takeFast does what takeCapped does for a charge that the limiter decides on
// its caller's stack, or has found to be denied. It returns false, and has done
// nothing, if the cap is out of the ordinary just now.
func (p *processCap) takeFast(l *Limiter, key []byte, charges *[1]Charge, came time.Duration, d *Decision) (bool, error) {
	limit := p.rule.Limit(nil)
	rule, most, on, err := l.effective(&limit)
	paid := [1]Charge{{Rule: rule, Max: most, Cost: 1}}
	if err != nil || !on || rule.Mode != Enforce || paid[0].hopeless() || len(l.namespace)+len(rule.Prefix) > fastKey {
		return false, nil
	}
	var array [fastKey + 32]byte
	capKey := appendKey(array[:0], l.namespace, rule, &limit.key)
	if err := p.store.decideOne(p.store.time(came), capKey, &paid[0], true); err != nil {
		return false, nil
	}
	if l.events.decides() {
		l.events.decided(paid[:], came, SourceProcess, nil)
	}
	if !paid[0].Allowed {
		*d = Decision{Source: SourceProcess}
		return true, l.answer(paid[:], came, d)
	}
	done, err := l.decideFast(key, charges, came, d)
	if !done || err != nil {
		p.store.refundOne(p.store.time(instant()), capKey, &paid[0])
	}
	return done, err
}

// admit charges one call to the cap. The error is non-nil if and only if the
// call may not go on; otherwise req says what was charged.
func (p *processCap) admit(l *Limiter, req *request, d *Decision) error {
	limit := [...]Limit{p.rule.Limit(nil)}
	if err := req.fill(l, limit[:]); err != nil || len(req.charges) == 0 {
		return err
	}
	req.call[0].came = instant()
	if !req.hopeless() {
		_ = p.store.Take(context.Background(), req.call[:]) // one call, with an error of its own
	}
	return l.conclude(req, SourceProcess, req.call[0].Err, d)
}

// giveBack undoes admit.
func (p *processCap) giveBack(paid *request) {
	if len(paid.charges) > 0 && paid.charges[0].At != 0 {
		_ = p.store.Refund(context.Background(), paid.charges)
	}
}
