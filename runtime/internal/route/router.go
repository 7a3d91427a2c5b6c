// Package route takes calls to the servers that their keys are on. On a single
// server that is one [batch.Batcher]. On a cluster or a ring there is one for
// each server, so that one which does not respond holds up nobody else's calls.
// A call whose keys lie in several slots is charged in parts, one in each slot,
// and what was charged is given back if another part has no room.
package route

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A Router is the way to all servers of a client. It is safe for concurrent use.
type Router struct {
	// Sharding finds out whether no call may be decided, since keys are sharded; or nil.
	Sharding *server.Sharding
	// Undecided is called for calls that were not decided, but not for those whose caller
	// gave up.
	Undecided func(err error, calls int)

	cfg    *batch.Config
	client rediswire.Client
	only   *batch.Batcher       // of the only server; nil: there are several
	slot   func(key []byte) int // nil: one script can span all keys

	// bySlot are the batchers of a cluster's slots as far as they are known; nil
	// for a ring, whose servers know no slots.
	bySlot []atomic.Pointer[batch.Batcher]
	ready  atomic.Bool      // the client finds servers at once
	asking *breaker.Breaker // of the search for servers

	mu       sync.Mutex
	byServer map[rediswire.Server]*batch.Batcher
	search   *search // under way
	leaving  leaving

	several  rediswire.Cluster // the client, if it is of several servers
	cluster  rediswire.Cluster // the client, if these redirect by slots
	reloadAt atomic.Int64      // from when on the topology may be loaded again
}

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

// Return implements [terms.Returner].
func (r *Router) Return(c *terms.Charge, done terms.Returned) bool {
	if r.Sharding != nil && r.Sharding.Found.Load() {
		return false
	}
	b, slot := r.only, 0
	switch {
	case b != nil:
	case r.bySlot != nil:
		slot = r.slot(c.Key)
		b = r.bySlot[slot].Load()
	case r.ready.Load(): // a ring knows without asking
		if server, err := r.several.Find(context.Background(), string(c.Key)); err == nil {
			b = r.batcherOf(server)
		}
	}
	return b != nil && b.Return(c, slot, done)
}

// decideEach executes an operation for charges, each as a call of its own, and sets the error
// of each.
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

// decideAll executes an operation for calls, unless the keys are sharded. Calls without charges are admitted.
func (r *Router) decideAll(ctx context.Context, op script.Operation, calls []terms.Call) error {
	if slices.ContainsFunc(calls, isEmpty) {
		return r.decideOthers(ctx, op, calls)
	}
	if r.Sharding != nil && r.Sharding.Found.Load() {
		return r.count(server.ErrSharded, calls)
	}
	return r.count(r.Decide(ctx, op, calls, terms.ArrivalOf(calls)), calls)
}

// Decide executes calls of a caller that arrived at an instant, and fills in their results.
// The error is non-nil if none was executed. A settlement also makes the denial memory forget
// the keys.
func (r *Router) Decide(ctx context.Context, op script.Operation, calls []terms.Call, arrived time.Duration) error {
	if m := r.cfg.Denials; m != nil && op == script.Settle {
		defer func() {
			for i := range calls {
				for j := range calls[i].Charges {
					m.Forget(calls[i].Charges[j].Key)
				}
			}
		}()
	}
	switch {
	case len(calls) == 0:
		return nil
	case r.only != nil:
		return r.share(ctx, r.only, op, 0, calls, arrived)
	case !r.together(calls):
		return r.decideParts(ctx, op, calls, false)
	}
	key := calls[0].Charges[0].Key
	slot := r.slot(key)
	b, err := r.batcher(ctx, key, slot)
	if err != nil {
		return err
	}
	return r.retryHalfMoved(ctx, op, calls, r.share(ctx, b, op, r.groupOf(slot), calls, arrived))
}

// share executes calls in batches that other callers share, as many at a time as are a batch's
// work, so that Redis is free for others in between. Once the caller's context or timeout is
// over, Redis is not asked about the rest.
func (r *Router) share(ctx context.Context, b *batch.Batcher, op script.Operation, slot int, calls []terms.Call, arrived time.Duration) error {
	n, _ := terms.Fit(calls)
	if n == len(calls) {
		return do(ctx, b, op, slot, calls, arrived)
	}
	decided, over, last := false, error(nil), error(nil)
	for ; n > 0; n, _ = terms.Fit(calls) {
		part := calls[:n]
		calls = calls[n:]
		err := over
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = do(ctx, b, op, slot, part, clock.Now())
		}
		if err == nil {
			decided = true
			continue
		}
		if _, late := err.(batch.LateError); late {
			over = err
		}
		last = err
		for i := range part {
			part[i].Err = err
		}
	}
	if decided {
		return nil
	}
	return last
}

// do executes calls together.
func do(ctx context.Context, b *batch.Batcher, op script.Operation, slot int, calls []terms.Call, arrived time.Duration) error {
	w := newWaiter(op, slot, calls, arrived)
	if err := b.Do(ctx, w); err != nil {
		return err
	}
	copyResults(calls, w)
	return nil
}

func newWaiter(op script.Operation, slot int, calls []terms.Call, arrived time.Duration) *batch.Waiter {
	w := batch.NewWaiter(op, arrived)
	for i := range calls {
		for j := range calls[i].Charges {
			*w.Charge() = calls[i].Charges[j]
			w.SetKey(calls[i].Charges[j].Key)
		}
		w.EndCall(calls[i].Again)
	}
	w.Seal()
	w.SetSlot(slot)
	return w
}

// copyResults copies the results of a waiter, and frees it.
func copyResults(calls []terms.Call, w *batch.Waiter) {
	for i := range calls {
		calls[i].Copy(&w.Calls[i])
	}
	w.Free()
}

// together reports whether one script can decide calls.
func (r *Router) together(calls []terms.Call) bool {
	first, known := 0, false
	for i := range calls {
		for j := range calls[i].Charges {
			slot := r.slot(calls[i].Charges[j].Key)
			if known && slot != first {
				return false
			}
			first, known = slot, true
		}
	}
	return true
}

func isEmpty(c terms.Call) bool { return len(c.Charges) == 0 }

// count reports calls that were not decided. It returns err, which is why none of them was.
// Cancelled calls are not counted.
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

// Count reports calls that were not decided for one reason.
func (r *Router) Count(err error, calls int) {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return
	}
	r.Undecided(err, calls)
	r.Doubt(err)
}
