package route

import (
	"cmp"
	"context"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Do has a sealed waiter's calls executed, as [batch.Batcher.Do] does. It returns
// false, and has done nothing, if their keys lie in several slots.
func (r *Router) Do(ctx context.Context, w *batch.Waiter) (done bool, err error) {
	if r.only != nil {
		return true, r.only.Do(ctx, w)
	}
	if !r.together(w.Calls) {
		return false, nil
	}
	key := w.Calls[0].Charges[0].Key
	slot := r.slot(key)
	b, err := r.batcher(ctx, key, slot)
	if err != nil {
		w.Free()
		return true, err
	}
	w.SetSlot(r.groupOf(slot))
	return true, b.Do(ctx, w)
}

// A part is the share of some calls whose keys lie in one slot.
type part struct {
	place
	calls  []terms.Call
	origin []int   // the call that each of calls is a part of
	places [][]int // which of its charges the charges are

	batcher *batch.Batcher
	err     error         // why it is not known where the slot is
	todo    []terms.Call  // not executed yet
	now     []terms.Call  // under way
	waiter  *batch.Waiter // of those; nil: they have failed
}

// A place says which part a charge belongs to.
type place struct {
	slot   int
	beside bool // it is of limits in shadow mode: nobody waits for them for long
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
				p = &part{place: at}
				parts[at] = p
			}
			if n := len(p.origin); single || n == 0 || p.origin[n-1] != i {
				p.calls = append(p.calls, terms.Call{Again: calls[i].Again})
				p.origin = append(p.origin, i)
				p.places = append(p.places, nil)
			}
			last := len(p.calls) - 1
			p.calls[last].Charges = append(p.calls[last].Charges, calls[i].Charges[j])
			p.places[last] = append(p.places[last], j)
		}
	}
	return parts
}

// drop leaves calls out of the part.
func (p *part) drop(undecided map[int]bool) {
	n := 0
	for i, origin := range p.origin {
		if !undecided[origin] {
			p.calls[n], p.origin[n], p.places[n] = p.calls[i], origin, p.places[i]
			n++
		}
	}
	p.calls, p.origin, p.places = p.calls[:n], p.origin[:n], p.places[:n]
}

// decideParts decides calls whose keys no single script can span: each part is
// charged by itself, and what was charged for a call that is not admitted is
// given back.
func (r *Router) decideParts(ctx context.Context, op script.Operation, calls []terms.Call, single bool) error {
	for i := range calls {
		calls[i].Err = nil
		for j := range calls[i].Charges {
			if op == script.Take {
				calls[i].Charges[j].At = 0 // not charged yet
			}
		}
	}
	parts := r.parts(calls, single)
	r.executeParts(ctx, op, parts)
	for _, p := range parts {
		for i, origin := range p.origin {
			err := p.calls[i].Err
			if err != nil && !p.beside {
				calls[origin].Err = err
				continue
			}
			for k, j := range p.places[i] {
				calls[origin].Charges[j].Result = p.calls[i].Charges[k].Result
				if err := cmp.Or(err, p.calls[i].Charges[k].Err); err != nil {
					calls[origin].Charges[j].Err = err
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
// the part stays charged until it leaves the window, as its Remaining says; the
// decisions stand. It is not tried again, since it may have been given back.
func (r *Router) giveBack(ctx context.Context, calls []terms.Call) {
	var settled []terms.Call
	var parts []*terms.Charge
	for i := range calls {
		if calls[i].Err == nil && terms.Admitted(calls[i].Charges) {
			continue
		}
		for j := range calls[i].Charges {
			if c := &calls[i].Charges[j]; c.At != 0 {
				back := *c
				back.GiveBack()
				settled, parts = append(settled, terms.Call{Charges: []terms.Charge{back}}), append(parts, c)
				c.At, c.Mark, c.Delay = 0, 0, 0
			}
		}
	}
	if len(settled) == 0 {
		return
	}
	err := r.Decide(context.WithoutCancel(ctx), script.Settle, settled, clock.Now())
	for i, c := range parts {
		if err := cmp.Or(err, settled[i].Err); err != nil {
			r.cfg.Kept(err)
		} else {
			c.Remaining += c.Cost
		}
	}
}
