package route

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// ShadowTime is how much longer a call waits for limits in shadow mode that lie apart
// from its others.
const ShadowTime = time.Millisecond

// errUnknownServer is the error of such a limit while it is not known where any key is.
var errUnknownServer = errors.New("it is not known yet which server has the key")

// A part is the share of some calls whose keys lie in one slot.
type part struct {
	beside bool // it is of limits in shadow mode: nobody waits for them for long
	calls  []terms.Call
	origin []int   // the call that each of calls is a part of
	places [][]int // which of its charges the charges are

	todo, now []terms.Call // not executed yet, and under way
	batcher   *batch.Batcher
	waiter    *batch.Waiter
	err       error
}

// A place says which part a charge belongs to.
type place struct {
	slot   int
	beside bool
}

// placeOf returns the part of a call's j-th charge. One in shadow mode that no script
// can span together with an enforced one is beside them.
func (r *Router) placeOf(call *terms.Call, j int, single bool) place {
	at, enforced := place{slot: r.slot(call.Charges[j].Key)}, call.Enforced()
	if j < enforced || enforced == 0 {
		return at
	}
	for k := range enforced {
		if !single && r.slot(call.Charges[k].Key) == at.slot {
			return at
		}
	}
	at.beside = true
	return at
}

// parts divides calls by slot, or if single by charge. The charges of the parts
// are copies.
func (r *Router) parts(calls []terms.Call, single bool) map[place]*part {
	parts := make(map[place]*part)
	for i := range calls {
		for j := range calls[i].Charges {
			at := r.placeOf(&calls[i], j, single)
			p := parts[at]
			if p == nil {
				p = &part{beside: at.beside}
				parts[at] = p
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
			err := p.calls[i].Err
			if err != nil && !p.beside {
				calls[origin].Err = err
				continue
			}
			for k, j := range p.places[i] {
				calls[origin].Charges[j].Result = p.calls[i].Charges[k].Result
				if err := cmp.Or(err, p.calls[i].FailureOf(k)); err != nil {
					calls[origin].Fail(j, err)
				}
			}
			if _, late := err.(batch.LateError); !late {
				r.Doubt(err)
			}
		}
	}
	if op == script.Take {
		r.giveBack(ctx, calls)
	}
	return nil
}

// executeParts has the parts executed, all at the same time, but of a part only
// MaxCalls calls. It waits for those beside the others no longer than ShadowTime.
func (r *Router) executeParts(ctx context.Context, op script.Operation, parts map[place]*part) {
	for rest := len(parts); rest > 0; {
		lost := r.startParts(ctx, op, parts, false, nil)
		// Without an end of its context a part can be left at any time, see batch.
		_ = r.startParts(context.WithoutCancel(ctx), op, parts, true, cmp.Or(lost, r.unready()))
		rest = waitParts(ctx, parts, false)
		patience := cmp.Or(r.cfg.Beside, ShadowTime)
		beside, cancel := context.WithTimeoutCause(ctx, patience, batch.LateError(patience))
		rest += waitParts(beside, parts, true)
		cancel()
	}
}

// unready returns an error if to find out where a key is may take a while.
func (r *Router) unready() error {
	if r.ready.Load() {
		return nil
	}
	return errUnknownServer
}

// startParts sends the next calls of the parts, or of those beside them. Lost is why it
// is not known where any key is, or nil: to wait for that once is enough. It is returned
// as it is by then.
func (r *Router) startParts(ctx context.Context, op script.Operation, parts map[place]*part, beside bool, lost error) error {
	for at, p := range parts {
		if p.beside != beside {
			continue
		}
		if p.now = p.todo[:min(len(p.todo), batch.MaxCalls)]; len(p.now) == 0 {
			continue
		}
		if p.err = lost; lost == nil {
			p.batcher, p.err = r.batcher(ctx, p.now[0].Charges[0].Key, at.slot)
		}
		if p.err != nil && !r.ready.Load() {
			lost = p.err
		}
		if p.err == nil {
			p.waiter = newWaiter(op, r.groupOf(at.slot), p.now, clock.Now())
			p.err = p.batcher.Start(ctx, p.waiter, false)
		}
	}
	return lost
}

// waitParts waits for what was sent of the parts, or of those beside them. It returns of
// how many something is left to send.
func waitParts(ctx context.Context, parts map[place]*part, beside bool) (rest int) {
	for _, p := range parts {
		if p.beside != beside || len(p.now) == 0 {
			continue
		}
		if p.err == nil {
			p.err = p.batcher.Wait(ctx, p.waiter)
		}
		if p.err == nil {
			copyResults(p.now, p.waiter)
		} else {
			if beside && ctx.Err() != nil {
				p.err = context.Cause(ctx)
			}
			for i := range p.now {
				p.now[i].Err = p.err
			}
		}
		if p.todo = p.todo[len(p.now):]; len(p.todo) > 0 {
			rest++
		}
	}
	return rest
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
