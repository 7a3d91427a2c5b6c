package route

import (
	"cmp"
	"context"
	"time"

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

	slot    int
	batcher *batch.Batcher
	err     error         // why it is not known where the slot is
	todo    []terms.Call  // not executed yet
	now     []terms.Call  // under way
	waiter  *batch.Waiter // of those; nil: they have failed
}

// maxAhead is how much work for one server a caller has under way.
const maxAhead = 4 * terms.MaxWork

// parts divides calls by slot, or if single by charge. The charges of the parts
// are copies.
func (r *Router) parts(calls []terms.Call, single bool) map[int]*part {
	parts := make(map[int]*part)
	for i := range calls {
		for j := range calls[i].Charges {
			slot := r.slot(calls[i].Charges[j].Key)
			p := parts[slot]
			if p == nil {
				p = &part{slot: slot}
				parts[slot] = p
			}
			if n := len(p.origin); single || n == 0 || p.origin[n-1] != i {
				p.calls = append(p.calls, terms.Call{})
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

// executeParts has the parts executed, all at the same time. But those whose servers may
// not respond come first, and what they leave undecided is left out of the others: else
// each call would be charged on a server that is well, and given back.
func (r *Router) executeParts(ctx context.Context, op script.Operation, parts map[int]*part) {
	var well, doubtful []*part
	var lost error // why it is not known where any key is: to wait for that once is enough
	for slot, p := range parts {
		if p.err = lost; lost == nil {
			p.batcher, p.err = r.batcher(ctx, p.calls[0].Charges[0].Key, slot)
		}
		if p.err != nil && !r.ready.Load() {
			lost = p.err
		}
		if p.err != nil || p.batcher.Breaker.Open() {
			doubtful = append(doubtful, p)
		} else {
			well = append(well, p)
		}
	}
	arrived := clock.Now()
	if len(doubtful) > 0 {
		r.execute(ctx, op, doubtful, arrived)
		undecided := make(map[int]bool)
		for _, p := range doubtful {
			for i, origin := range p.origin {
				if p.calls[i].Err != nil {
					undecided[origin] = true
				}
			}
		}
		if len(undecided) > 0 {
			arrived = clock.Now() // the other calls do not wait for these
		}
		for _, p := range well {
			p.drop(undecided)
		}
	}
	r.execute(ctx, op, well, arrived)
}

// execute has parts executed at the same time, but on each server no more than a few
// batches' work: the others have their time from when they are sent. A server that did not
// answer in time is not asked about the rest.
func (r *Router) execute(ctx context.Context, op script.Operation, parts []*part, arrived time.Duration) {
	for _, p := range parts {
		p.todo = p.calls
	}
	late := make(map[*batch.Batcher]error)
	for rest := true; rest; arrived = clock.Now() {
		rest = false
		ahead := make(map[*batch.Batcher]int64)
		for _, p := range parts {
			p.waiter = nil
			n, work := terms.Fit(p.todo)
			if n == 0 || ahead[p.batcher] > 0 && ahead[p.batcher]+work > maxAhead {
				continue
			}
			rest = true
			ahead[p.batcher] += work
			p.now, p.todo = p.todo[:n], p.todo[n:]
			err := cmp.Or(p.err, late[p.batcher], ctx.Err())
			if err == nil {
				w := newWaiter(op, r.groupOf(p.slot), p.now, arrived)
				if err = p.batcher.Start(ctx, w, false); err == nil {
					p.waiter = w
				}
			}
			p.fail(err)
		}
		for _, p := range parts {
			if p.waiter == nil {
				continue
			}
			err := p.batcher.Wait(ctx, p.waiter)
			if err == nil {
				copyResults(p.now, p.waiter)
			} else if _, ok := err.(batch.LateError); ok {
				late[p.batcher] = err
			}
			p.fail(err)
		}
	}
}

// fail notes why the calls under way are not decided, if that is so.
func (p *part) fail(err error) {
	for i := 0; err != nil && i < len(p.now); i++ {
		p.now[i].Err = err
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
				back.GiveBack()
				settled = append(settled, terms.Call{Charges: []terms.Charge{back}})
				c.Remaining += c.Cost
				c.At, c.Mark, c.Delay = 0, 0, 0
			}
		}
	}
	if len(settled) > 0 {
		_ = r.Decide(context.WithoutCancel(ctx), script.Settle, settled, clock.Now())
	}
}
