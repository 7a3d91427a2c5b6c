package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

func (r *Router) Renew(ctx context.Context, calls []terms.Call) error {
	// The script writes its results to copies, since the next renewal needs At.
	renewed, held := slices.Clone(calls), make([]terms.Charge, 0, len(calls))
	for i := range calls {
		held = append(held, calls[i].Charges[0])
		renewed[i].Charges = held[i : i+1 : i+1]
	}
	err := r.decideAll(ctx, script.Renew, renewed)
	for i := range calls {
		calls[i].Err = renewed[i].Err
		c := &calls[i].Charges[0]
		if err != nil || calls[i].Err != nil {
			continue
		}
		if held[i].Remaining == 0 {
			c.At = 0
		} else if c.Reserve > 0 {
			c.At = held[i].Remaining
		}
	}
	return err
}

func (r *Router) Hold(ctx context.Context, charges []terms.Charge) error {
	err := r.decideEach(ctx, script.Hold, charges)
	for i := range charges {
		r.forgetRefusal(charges[i].Key)
	}
	return err
}

func (r *Router) Reset(ctx context.Context, charges []terms.Charge) error {
	var failed error
	for i := range charges {
		c := &charges[i]
		if (c.Lapses() || c.Ledger) && r.resetLapsing(ctx, c) == nil {
			continue
		}
		failed = errors.Join(failed, r.countAll(r.resetKey(ctx, c.Key), nil))
	}
	return failed
}

// resetLapsing forgets what is held of a key, and lets no renewal bring it back.
func (r *Router) resetLapsing(ctx context.Context, c *terms.Charge) error {
	plain := *c
	plain.Cost = 0
	calls := []terms.Call{{Charges: []terms.Charge{plain}}}
	err := r.decideAll(ctx, script.Renew, calls)
	r.forgetRefusal(c.Key)
	if err = cmp.Or(err, calls[0].Err); err == nil && c.Ledger && c.Blocks() {
		plain.At = 0
		err = r.Hold(ctx, []terms.Charge{plain})
	}
	return err
}
