package route

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Take implements [terms.Store]. The memory of denials was asked before.
func (r *Router) Take(ctx context.Context, calls []terms.Call) error {
	return r.decideAll(ctx, script.Take, calls)
}

// Peek implements [terms.Store].
func (r *Router) Peek(ctx context.Context, calls []terms.Call) error {
	return r.decideAll(ctx, script.Peek, calls)
}

// Settle implements [terms.Store].
func (r *Router) Settle(ctx context.Context, charges []terms.Charge) error {
	return r.decideEach(ctx, script.Settle, charges)
}

// Renew implements [terms.Store].
func (r *Router) Renew(ctx context.Context, calls []terms.Call) error {
	// The script writes its results to copies, since the next renewal needs At.
	renewed, held := slices.Clone(calls), make([]terms.Charge, 0, len(calls))
	for i := range calls {
		held = append(held, calls[i].Charges[0])
		renewed[i].Charges = held[i : i+1 : i+1]
	}
	err := r.decideAll(ctx, script.Renew, renewed)
	for i := range calls {
		if calls[i].Err = renewed[i].Err; err == nil && calls[i].Err == nil && held[i].Remaining == 0 {
			calls[i].Charges[0].At = 0
		}
	}
	return err
}

// Hold implements [terms.Store].
func (r *Router) Hold(ctx context.Context, charges []terms.Charge) error {
	err := r.decideEach(ctx, script.Hold, charges)
	if m := r.cfg.Denials; m != nil {
		for i := range charges {
			m.Forget(charges[i].Key)
		}
	}
	return err
}

// Reset implements [terms.Store].
func (r *Router) Reset(ctx context.Context, charges []terms.Charge) error {
	var failed error
	for i := range charges {
		if charges[i].Algorithm == terms.Permits && r.resetPermits(ctx, &charges[i]) == nil {
			continue
		}
		failed = errors.Join(failed, r.count(r.resetKey(ctx, charges[i].Key), nil))
	}
	return failed
}

// decideEach has an operation done for charges, each as a call of its own, and gives each
// its error.
func (r *Router) decideEach(ctx context.Context, op script.Operation, charges []terms.Charge) error {
	calls := make([]terms.Call, len(charges))
	for i := range charges {
		calls[i].Charges = charges[i : i+1]
	}
	err := r.decideAll(ctx, op, calls)
	for i := range charges {
		charges[i].Err = calls[i].Err
	}
	return err
}

// decideAll has an operation done for calls, unless none may be now. Calls without charges are admitted.
func (r *Router) decideAll(ctx context.Context, op script.Operation, calls []terms.Call) error {
	if slices.ContainsFunc(calls, isEmpty) {
		return r.decideOthers(ctx, op, calls)
	}
	err := r.Refuses()
	if err == nil {
		err = r.Decide(ctx, op, calls, terms.ArrivalOf(calls))
	}
	return r.count(err, calls)
}

// decideOthers is decideAll for the calls that have charges.
func (r *Router) decideOthers(ctx context.Context, op script.Operation, calls []terms.Call) error {
	asked := slices.DeleteFunc(slices.Clone(calls), isEmpty)
	for i := range calls {
		calls[i].Err = nil
	}
	if len(asked) == 0 {
		return nil
	}
	err := r.decideAll(ctx, op, asked)
	for i := range calls {
		if !isEmpty(calls[i]) {
			calls[i].Err, asked = asked[0].Err, asked[1:]
		}
	}
	return err
}

// resetPermits forgets the permits of a key, and lets no renewal bring them back.
func (r *Router) resetPermits(ctx context.Context, c *terms.Charge) error {
	plain := *c
	plain.Cost = 0
	calls := []terms.Call{{Charges: []terms.Charge{plain}}}
	err := r.decideAll(ctx, script.Renew, calls)
	if m := r.cfg.Denials; m != nil {
		m.Forget(c.Key)
	}
	return cmp.Or(err, calls[0].Err)
}

func isEmpty(c terms.Call) bool { return len(c.Charges) == 0 }

// count tells of calls that were not decided, and returns err: why
// none of them was. That a caller gave up is no failure.
func (r *Router) count(err error, calls []terms.Call) error {
	if err != nil {
		r.Count(err, max(1, len(calls)))
		return err
	}
	for i := range calls {
		if calls[i].Err != nil {
			r.Count(calls[i].Err, 1)
		}
	}
	return nil
}

// Count tells of calls that were not decided for one reason.
func (r *Router) Count(err error, calls int) {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return
	}
	r.Undecided(err, calls)
	r.Doubt(err)
}
