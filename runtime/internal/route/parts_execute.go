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

const (
	// ShadowTime is how much longer a call waits for limits in shadow mode that lie
	// apart from its others.
	ShadowTime = time.Millisecond
	// maxAhead is how much work for one server a caller has under way.
	maxAhead = 5 * terms.MaxWork
	// scriptWork is that of a script beside its charges, of which each slot needs one. With
	// less a server gets so many at once that they have no answer in time.
	scriptWork = 7 * terms.Work
)

// errUnknownServer is the error of a limit in shadow mode while it is not known where any
// key is.
var errUnknownServer = errors.New("it is not known yet which server has the key")

// executeParts has the parts executed, all at the same time. But those whose servers may
// not respond come first, and what they leave undecided is left out of the others: else
// each call would be charged on a server that is well, and given back. It waits for parts
// beside the others no longer than ShadowTime.
func (r *Router) executeParts(ctx context.Context, op script.Operation, parts map[place]*part) {
	var well, doubtful, beside []*part
	var lost error // why it is not known where any key is: to wait for that once is enough
	for at, p := range parts {
		if at.beside {
			beside = append(beside, p)
			continue
		}
		if lost = r.locate(ctx, p, lost); p.err != nil || p.batcher.Breaker.Open() {
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
		for _, p := range beside {
			p.drop(undecided)
		}
	}
	underway := r.startBeside(ctx, op, beside, lost, arrived)
	r.execute(ctx, op, well, arrived)
	if op == script.Take {
		underway = leaveRefused(underway, parts)
	}
	r.awaitBeside(ctx, underway)
}

// leaveRefused returns what was sent for calls that the parts beside it admit. A limit in shadow
// mode counts no others, and has nothing to say of them.
func leaveRefused(underway []flight, parts map[place]*part) (admitted []flight) {
	if len(underway) == 0 {
		return nil
	}
	refused := make(map[int]bool)
	for _, p := range parts {
		for i, origin := range p.origin {
			if !p.beside && (p.calls[i].Err != nil || !terms.Admitted(p.calls[i].Charges)) {
				refused[origin] = true
			}
		}
	}
	for _, f := range underway {
		if !refused[f.origin] {
			admitted = append(admitted, f)
			continue
		}
		f.batcher.Leave(f.waiter)
		for i := range f.call.Charges {
			f.call.Charges[i].Result = terms.Result{Allowed: true, Remaining: f.call.Charges[i].Max}
		}
	}
	return admitted
}

// locate finds out which server has a part. Lost is why that is not known of any key, and
// is returned as it is by then.
func (r *Router) locate(ctx context.Context, p *part, lost error) error {
	if p.err = lost; lost == nil {
		p.batcher, p.err = r.batcher(ctx, p.calls[0].Charges[0].Key, p.slot)
	}
	if p.err != nil && !r.ready.Load() {
		return p.err
	}
	return lost
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
			if work += scriptWork; n == 0 || ahead[p.batcher] > 0 && ahead[p.batcher]+work > maxAhead {
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
			fail(p.now, err)
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
			fail(p.now, err)
		}
	}
}

// A flight is a call that was sent of a part beside others.
type flight struct {
	call    *terms.Call
	origin  int // the call that it is a part of
	batcher *batch.Batcher
	waiter  *batch.Waiter
}

// startBeside sends parts beside others, of which no more than the work that a caller may
// have under way. What is not sent has failed.
func (r *Router) startBeside(ctx context.Context, op script.Operation, parts []*part, lost error, arrived time.Duration) (underway []flight) {
	if lost == nil && !r.ready.Load() {
		lost = errUnknownServer // to find out may take a while
	}
	ahead := make(map[*batch.Batcher]int64)
	for _, p := range parts {
		if len(p.calls) == 0 {
			continue
		}
		r.locate(ctx, p, lost)
		for i := range p.calls {
			one := p.calls[i : i+1]
			_, work := terms.Fit(one)
			f, err := flight{call: &one[0], origin: p.origin[i], batcher: p.batcher}, p.err
			if err == nil && ahead[p.batcher] > 0 && ahead[p.batcher]+work > maxAhead {
				err = batch.ErrCrowded
			}
			if err == nil {
				ahead[p.batcher] += work
				f.waiter = newWaiter(op, r.groupOf(p.slot), one, arrived)
				// Without an end of its context a waiter can be left at any time, see batch.
				err = p.batcher.Start(context.WithoutCancel(ctx), f.waiter, false)
			}
			if fail(one, err); err == nil {
				underway = append(underway, f)
			}
		}
	}
	return underway
}

// awaitBeside waits for what startBeside has sent, for a moment.
func (r *Router) awaitBeside(ctx context.Context, underway []flight) {
	if len(underway) == 0 {
		return
	}
	patience := cmp.Or(r.cfg.Beside, ShadowTime)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, batch.LateError(patience))
	defer cancel()
	for _, f := range underway {
		err := f.batcher.Wait(ctx, f.waiter)
		switch {
		case err == nil:
			f.call.Copy(&f.waiter.Calls[0])
			f.waiter.Free()
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		f.call.Err = cmp.Or(err, f.call.Err)
	}
}

// fail notes why calls are not decided, if that is so.
func fail(calls []terms.Call, err error) {
	for i := 0; err != nil && i < len(calls); i++ {
		calls[i].Err = err
	}
}
