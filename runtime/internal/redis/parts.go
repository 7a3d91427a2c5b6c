package redis

import (
	"cmp"
	"context"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A part is the share of some calls whose keys lie in one slot.
type part struct {
	partKey
	calls  []terms.Call
	origin []int   // the call that each of calls is a part of
	places [][]int // which of its charges the charges are

	batcher   *batcher
	err       error        // why it is not known where the slot is
	remaining []terms.Call // not executed yet
	current   []terms.Call // under way
	waiter    *waiter      // of those; nil: they have failed
}

// A partKey says which part a charge belongs to.
type partKey struct {
	slot   int
	beside bool // it is of limits in shadow mode: nobody waits for them for long
	looks  bool // it is of charges that are made at their call's turn, and only looked at before
}

// operation returns what is done with a part of calls for which op is.
func (k partKey) operation(op script.Operation) script.Operation {
	if k.looks {
		return script.Peek
	}
	return op
}

// partOf returns the part of a call's j-th charge. A charge in shadow mode is beside the others
// if no script can span it together with an enforced one.
func (r *Router) partOf(call *terms.Call, j int, by division) partKey {
	key, enforced := partKey{slot: r.slot(call.Charges[j].Key), looks: call.Charges[j].Deferred}, call.Enforced()
	if j < enforced || enforced == 0 {
		return key
	}
	for k := range enforced {
		if by == eachSlot && r.slot(call.Charges[k].Key) == key.slot {
			return key
		}
	}
	key.beside = true
	return key
}

// A division says what scripts have to span.
type division bool

const (
	eachSlot   division = false // the charges of a call in a slot
	eachCharge division = true  // one charge
)

// parts divides calls. The charges of the parts are copies.
func (r *Router) parts(calls []terms.Call, by division) map[partKey]*part {
	parts := make(map[partKey]*part)
	for i := range calls {
		for j := range calls[i].Charges {
			key := r.partOf(&calls[i], j, by)
			p := parts[key]
			if p == nil {
				p = &part{partKey: key}
				parts[key] = p
			}
			n := len(p.origin)
			if by == eachCharge || n == 0 || p.origin[n-1] != i {
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
func (r *Router) decideParts(ctx context.Context, op script.Operation, calls []terms.Call, by division) {
	for i := range calls {
		calls[i].Err = nil
		for j := range calls[i].Charges {
			if op == script.Take {
				calls[i].Charges[j].At = 0 // not charged yet
			}
		}
	}
	parts := r.parts(calls, by)
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
				failed := cmp.Or(err, p.calls[i].Charges[k].Err)
				if failed != nil {
					calls[origin].Charges[j].Err = failed
				}
			}
			if !isLate(err) {
				r.doubt(err)
			}
		}
	}
	if op == script.Take {
		for i := range calls {
			turn := terms.Turn(calls[i].Charges)
			for j := range calls[i].Charges {
				_ = calls[i].Charges[j].AwaitsTurn(turn)
			}
		}
		r.giveBack(ctx, calls)
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
		one := cmp.Or(err, calls[i].Err)
		if one != nil && script.TryAgain(one) && len(calls[i].Charges) > 1 {
			r.decideParts(ctx, op, calls[i:i+1], eachCharge)
		} else {
			calls[i].Err = one
		}
	}
	return nil
}

// giveBack gives back what was charged for calls that are not admitted. Where the context has
// ended it does not wait for that. If Redis fails just now the part stays charged until it leaves
// the window, as its Remaining says; the decisions stand. It is not tried again, since it may
// have been given back.
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
				c.At, c.Mark, c.Delay = 0, 0, 0
				if ctx.Err() != nil && r.Return(&back, terms.Unheard{}) {
					continue
				}
				settled, parts = append(settled, terms.Call{Charges: []terms.Charge{back}}), append(parts, c)
			}
		}
	}
	if len(settled) == 0 {
		return
	}
	err := r.decide(context.WithoutCancel(ctx), script.Settle, settled, clock.Now())
	for i, c := range parts {
		failed := cmp.Or(err, settled[i].Err)
		if failed != nil {
			r.count(failed, 1)
		} else {
			c.Remaining += c.Cost
		}
	}
}
