package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

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
func (r *Router) executeParts(ctx context.Context, op script.Operation, parts map[partKey]*part) {
	var well, doubtful, beside []*part
	var lost error // why it is not known where any key is: to wait for that once is enough
	for key, p := range parts {
		if key.beside {
			beside = append(beside, p)
			continue
		}
		lost = r.locate(ctx, p, lost)
		if p.err != nil || p.batcher.breaker.Open() {
			doubtful = append(doubtful, p)
		} else {
			well = append(well, p)
		}
	}
	arrived := clock.Now()
	if len(doubtful) > 0 {
		r.execute(ctx, op, doubtful, arrived)
		undecided := undecidedOf(doubtful)
		if len(undecided) > 0 {
			arrived = clock.Now() // the other calls do not wait for these
		}
		for _, p := range slices.Concat(well, beside) {
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

// undecidedOf returns the calls of which a part was not decided.
func undecidedOf(parts []*part) map[int]bool {
	undecided := make(map[int]bool)
	for _, p := range parts {
		for i, origin := range p.origin {
			if p.calls[i].Err != nil {
				undecided[origin] = true
			}
		}
	}
	return undecided
}

// leaveRefused gives up what was sent for calls that enforced limits refuse, since limits in
// shadow mode count only calls that pass the others. It returns the rest.
func leaveRefused(underway []flight, parts map[partKey]*part) (admitted []flight) {
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

// locate finds out which server has a part. Lost is why it is not known where any key is, or
// nil. It returns the same for the next part.
func (r *Router) locate(ctx context.Context, p *part, lost error) error {
	p.err = lost
	if lost == nil {
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
		p.remaining = p.calls
	}
	late := make(map[*batcher]error)
	for more := true; more; arrived = clock.Now() {
		more = r.startParts(ctx, op, parts, late, arrived)
		for _, p := range parts {
			if p.waiter == nil {
				continue
			}
			err := p.batcher.Wait(ctx, p.waiter)
			if err == nil {
				p.waiter.copyResults(p.current)
			} else if isLate(err) {
				late[p.batcher] = err
			}
			fail(p.current, err)
		}
	}
}

// startParts sends as much of each part as its server takes now, and reports whether any was left. Late are
// servers that are not asked.
func (r *Router) startParts(ctx context.Context, op script.Operation, parts []*part, late map[*batcher]error,
	arrived time.Duration) (more bool) {
	ahead := make(map[*batcher]int64)
	for _, p := range parts {
		p.waiter = nil
		n, work := terms.Fit(p.remaining)
		if n == 0 || !fitsAhead(ahead, p.batcher, work+scriptWork) {
			continue
		}
		more = true
		p.current, p.remaining = p.remaining[:n], p.remaining[n:]
		err := cmp.Or(p.err, late[p.batcher], ctx.Err())
		if err == nil {
			p.waiter, err = r.start(ctx, op, p, p.current, work, arrived)
		}
		fail(p.current, err)
	}
	return more
}

// fitsAhead reports whether a server takes more work of a caller, of which it has some under way, and counts
// it then.
func fitsAhead(ahead map[*batcher]int64, b *batcher, work int64) bool {
	if ahead[b] > 0 && ahead[b]+work > maxAhead {
		return false
	}
	ahead[b] += work
	return true
}

// start sends some calls of a part, which are so much work.
func (r *Router) start(ctx context.Context, op script.Operation, p *part, calls []terms.Call, work int64,
	arrived time.Duration) (*waiter, error) {
	w := waiterOf(p.operation(op), r.groupOf(p.slot), calls, work, arrived)
	if err := p.batcher.Start(ctx, w); err != nil {
		return nil, err // which has freed the waiter
	}
	return w, nil
}

// A flight is a call that was sent of a part beside others.
type flight struct {
	call    *terms.Call
	origin  int // the call that it is a part of
	batcher *batcher
	waiter  *waiter
}

// startBeside sends parts beside others, of which no more than the work that a caller may
// have under way. What is not sent has failed.
func (r *Router) startBeside(ctx context.Context, op script.Operation, parts []*part, lost error,
	arrived time.Duration) (underway []flight) {
	if lost == nil && !r.ready.Load() {
		lost = errUnknownServer // to find out may take a while
	}
	ahead := make(map[*batcher]int64)
	for _, p := range parts {
		if len(p.calls) == 0 {
			continue
		}
		r.locate(ctx, p, lost)
		for i := range p.calls {
			one := p.calls[i : i+1]
			_, work := terms.Fit(one)
			f, err := flight{call: &one[0], origin: p.origin[i], batcher: p.batcher}, p.err
			if err == nil && !fitsAhead(ahead, p.batcher, work) {
				err = ErrCrowded
			}
			if err == nil {
				// Without an end of its context a waiter can be left at any time, see setPatience.
				f.waiter, err = r.start(context.WithoutCancel(ctx), op, p, one, work, arrived)
			}
			fail(one, err)
			if err == nil {
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
	ctx, cancel := context.WithTimeoutCause(ctx, patience, LateError(patience))
	defer cancel()
	for _, f := range underway {
		err := f.batcher.Wait(ctx, f.waiter)
		if err == nil {
			f.call.Copy(&f.waiter.Calls[0])
			f.waiter.Free()
		} else if ctx.Err() != nil {
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
