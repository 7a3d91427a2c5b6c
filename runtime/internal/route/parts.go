package route

import (
	"cmp"
	"context"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A part is the share of some calls whose keys lie in one slot.
type part struct {
	calls  []terms.Call
	origin []int   // the call that each of calls is a part of
	places [][]int // which of its charges the charges are

	todo, now []terms.Call // not executed yet, and under way
	batcher   *batch.Batcher
	waiter    *batch.Waiter
	err       error
}

// parts divides calls by slot, or if single by charge. The charges of the parts
// are copies.
func (r *Router) parts(calls []terms.Call, single bool) map[int]*part {
	parts := make(map[int]*part)
	for i := range calls {
		for j := range calls[i].Charges {
			slot := r.slot(calls[i].Charges[j].Key)
			p := parts[slot]
			if p == nil {
				p = new(part)
				parts[slot] = p
			}
			if n := len(p.origin); single || n == 0 || p.origin[n-1] != i {
				p.calls = append(p.calls, terms.Call{Part: true, Again: calls[i].Again})
				p.origin = append(p.origin, i)
				p.places = append(p.places, nil)
			}
			last := len(p.calls) - 1
			p.calls[last].Charges = append(p.calls[last].Charges, calls[i].Charges[j])
			p.places[last] = append(p.places[last], j)
		}
	}
	for _, p := range parts {
		p.todo = p.calls
	}
	return parts
}

// decideParts decides calls whose keys no single script can span: each part is
// charged by itself, and what was charged for a call that is not admitted is
// given back.
func (r *Router) decideParts(ctx context.Context, op script.Operation, calls []terms.Call, single bool) error {
	parts := r.parts(calls, single)
	r.executeParts(ctx, op, parts)
	for i := range calls {
		calls[i].Err = nil
	}
	for _, p := range parts {
		for i, origin := range p.origin {
			if err := p.calls[i].Err; err != nil {
				calls[origin].Err = err
				continue
			}
			for k, j := range p.places[i] {
				calls[origin].Charges[j].Result = p.calls[i].Charges[k].Result
			}
		}
	}
	if op == script.Take {
		r.giveBack(ctx, calls)
	}
	return nil
}

// executeParts has the parts executed, all at the same time, but of a part only
// MaxCalls calls.
func (r *Router) executeParts(ctx context.Context, op script.Operation, parts map[int]*part) {
	for rest := len(parts); rest > 0; {
		var lost error // why it is not known where any key is: to wait for that once is enough
		for slot, p := range parts {
			if p.now = p.todo[:min(len(p.todo), batch.MaxCalls)]; len(p.now) == 0 {
				continue
			}
			if p.err = lost; lost == nil {
				p.batcher, p.err = r.batcher(ctx, p.now[0].Charges[0].Key, slot)
			}
			if p.err != nil && !r.ready.Load() {
				lost = p.err
			}
			if p.err == nil {
				p.waiter = newWaiter(op, r.groupOf(slot), p.now, clock.Now())
				p.err = p.batcher.Start(ctx, p.waiter, false)
			}
		}
		rest = 0
		for _, p := range parts {
			if len(p.now) == 0 {
				continue
			}
			if p.err == nil {
				p.err = p.batcher.Wait(ctx, p.waiter)
			}
			if p.err == nil {
				copyResults(p.now, p.waiter)
			} else {
				for i := range p.now {
					p.now[i].Err = p.err
				}
			}
			p.todo = p.todo[len(p.now):]
			rest += len(p.todo)
		}
	}
}

// retryHalfMoved decides calls in parts for which a script got an error, since
// their slot is on the move and their keys lie on two servers: no script can
// span them, but each key is on one. Err is why no call was decided, or nil.
func (r *Router) retryHalfMoved(ctx context.Context, op script.Operation, calls []terms.Call, err error) error {
	if r.cluster == nil || err != nil && !script.TryAgain(err) {
		return err
	}
	for i := range calls {
		if one := cmp.Or(err, calls[i].Err); one != nil && script.TryAgain(one) && len(calls[i].Charges) > 1 {
			if err := r.decideParts(ctx, op, calls[i:i+1], true); err != nil {
				return err
			}
		} else {
			calls[i].Err = one
		}
	}
	return nil
}

// giveBack gives back what was charged for calls that are not admitted. It has the
// timeout to itself, since the context may have ended. If Redis fails just now
// the part stays charged until it leaves the window; the decisions stand.
func (r *Router) giveBack(ctx context.Context, calls []terms.Call) {
	var settled []terms.Call
	for i := range calls {
		if calls[i].Err == nil && calls[i].Admitted() {
			continue
		}
		for j := range calls[i].Charges {
			if c := &calls[i].Charges[j]; c.At != 0 {
				back := *c
				back.Cost = -c.Cost
				settled = append(settled, terms.Call{Charges: []terms.Charge{back}})
				c.Remaining += c.Cost
				c.At, c.Delay = 0, 0
			}
		}
	}
	if len(settled) > 0 {
		_ = r.Decide(context.WithoutCancel(ctx), script.Settle, settled, clock.Now())
	}
}
