package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// WithProcessCap puts a limit in memory before the store: r bounds how many
// calls of this process are admitted, whatever their rules and keys. It protects
// the process and the store when one node is flooded. It is always in force, also
// while the store gives no answer, and for calls whose own limits are switched
// off, cost nothing or have an invalid key. Only the limiter's kill switch ends
// it too.
//
// Each call costs 1. A call that is denied by its own limits gives its charge
// back; a [Limiter.Refund] does not. Overrides, a [Scaler], r's Mode and its Block
// apply to the cap, r's Wait does not. A call over the cap gets a [*LimitedError]
// with r's name, and its decision has the source [SourceProcess]. [Limiter.Peek]
// ignores the cap. A nil r is no cap. A cap cannot be a [Concurrency]: every call
// is [ErrInvalidLimit] then.
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

// A processCap is the limit that all calls of a limiter must pass first.
type processCap struct {
	rule  *Rule
	store *MemoryStore
}

// takeCapped is take for a call that the cap admits. A call that can never be
// admitted is not charged to the cap. A call without other limits ends here.
func (l *Limiter) takeCapped(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	if req.denyUnsatisfiable() {
		return l.take(ctx, req, limits, d)
	}
	paid := newRequest()
	defer paid.free()
	if err := l.cap.admit(ctx, l, paid, d); err != nil {
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

// takeFast is takeCapped for a charge that the limiter decides on its caller's
// stack, or has found to be denied. It returns false, and has done nothing, if
// the cap needs the general path.
func (p *processCap) takeFast(ctx context.Context, l *Limiter, taken *Limit, plan *plan, c *terms.Charge, arrived time.Duration, d *Decision) (bool, error) {
	limit := p.rule.Limit(nil)
	own := l.planOf(&limit)
	if own == nil || !own.takes(&limit) || own.terms.Algorithm == terms.Permits {
		return false, nil
	}
	var array [fastKey]byte
	paid := terms.Charge{Terms: own.terms, Key: own.key(&array, &limit.key), Cost: limit.cost}
	if !p.store.states.Decide(p.store.time(arrived), &paid, true) {
		return false, nil
	}
	if l.events.decides() {
		l.decidedFast(ctx, own, &paid, arrived, SourceProcess)
	}
	if !paid.Allowed {
		charges := [1]Charge{own.charge(&paid)}
		*d = Decision{Source: SourceProcess}
		return true, l.answer(charges[:], arrived, d)
	}
	done, err := l.decideFast(ctx, taken, plan, c, arrived, d)
	if !done || err != nil {
		paid.GiveBack()
		p.store.states.Settle(p.store.time(instant()), &paid)
	}
	return done, err
}

// admit charges one call to the cap. The error is non-nil if and only if the
// call may not go on; otherwise req holds the charge.
func (p *processCap) admit(ctx context.Context, l *Limiter, req *request, d *Decision) error {
	if p.rule.Algorithm == Concurrency {
		return fmt.Errorf("%w: rule %q: a process cap is no %v, since nothing returns its permits: give the limits of the calls one beside their own", ErrInvalidLimit, p.rule.Name, p.rule.Algorithm)
	}
	limit := [...]Limit{p.rule.Limit(nil)}
	if err := req.fill(ctx, l, limit[:]); err != nil || len(req.charges) == 0 {
		return err
	}
	req.call[0].arrived = instant()
	if !req.denyUnsatisfiable() {
		_ = p.store.Take(context.Background(), req.call[:]) // one call, with an error of its own
	}
	return l.finish(ctx, req, limit[:], SourceProcess, req.call[0].Err, d)
}

// giveBack undoes admit.
func (p *processCap) giveBack(paid *request) {
	if len(paid.charges) > 0 && paid.charges[0].At != 0 {
		_ = p.store.Settle(context.Background(), paid.charges) // at 0
	}
}
