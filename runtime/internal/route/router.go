// Package route takes calls to the servers that their keys are on. On a single
// server that is one [batch.Batcher]. On a cluster or a ring there is one for
// each server, so that one which does not respond holds up nobody else's calls.
// A call whose keys lie in several slots is charged in parts, one in each slot,
// and what was charged is given back if another part has no room.
package route

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/slots"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Router is the way to all servers of a client. It is safe for concurrent use.
type Router struct {
	// Refuses says why no call may be decided now, or nil.
	Refuses func() error
	// Undecided is told of calls that were not decided, but not of those whose caller
	// gave up.
	Undecided func(err error, calls int)

	cfg    *batch.Config
	client redis.UniversalClient
	only   *batch.Batcher       // of the only server; nil: there are several
	slot   func(key []byte) int // nil: one script can span all keys
	find   func(ctx context.Context, key string) (*redis.Client, error)

	// bySlot are the batchers of a cluster's slots as far as they are known; nil
	// for a ring, whose servers know no slots.
	bySlot []atomic.Pointer[batch.Batcher]
	ready  atomic.Bool      // find answers at once
	asking *breaker.Breaker // of the search for servers

	mu       sync.Mutex
	byServer map[*redis.Client]*batch.Batcher
	search   *search // under way
	leaving  leaving

	cluster  *redis.ClusterClient // nil: the client is of no cluster
	reloadAt atomic.Int64         // from when on the topology may be loaded again
}

// New returns a router for a client. It takes one that is no
// [redis.ClusterClient] or [redis.Ring] for one of a single server. It completes
// cfg, which must not be used otherwise.
func New(client redis.UniversalClient, cfg *batch.Config) *Router {
	r := &Router{cfg: cfg, client: client}
	cfg.Doubt, cfg.Moved, cfg.Server = r.Doubt, r.moved, r.server
	r.asking = breaker.New(cfg.Timeout, func(open bool) { cfg.Changed("", open) })
	switch c := client.(type) {
	case *redis.ClusterClient:
		r.cluster, cfg.Router = c, c
		r.slot, r.find = slots.Of, c.MasterForKey
		r.bySlot = make([]atomic.Pointer[batch.Batcher], slots.Count)
	case *redis.Ring:
		seed := maphash.MakeSeed()
		cfg.Router = c
		r.slot = func(key []byte) int { return int(maphash.Bytes(seed, slots.HashTag(key))) }
		r.find = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
		r.ready.Store(true)
	default:
		r.only = batch.New(cfg, client)
		return r
	}
	if cfg.Denials != nil {
		cfg.Denials.Parts()
	}
	r.byServer = make(map[*redis.Client]*batch.Batcher)
	changed := cfg.Changed
	cfg.Changed = func(node string, open bool) {
		if changed(node, open); open {
			r.watchLeaving()
		}
	}
	return r
}

// Decide has calls of a caller that arrived at an instant executed, and fills in
// their results. The error is non-nil if none was executed. To settle also makes
// the denial memory forget the keys.
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

// share has calls executed in batches that other callers share, as many at a time as
// are a batch's work, so that Redis is free for others in between. Once the caller has
// gone, or has waited in vain, Redis is not asked about the rest.
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

// do has calls executed together.
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

// copyResults copies what a waiter was told, and frees it.
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
