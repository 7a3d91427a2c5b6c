package redis

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A Router is the way to all servers of a client: a [terms.Store], and a [terms.Returner]. It is safe for
// concurrent use.
type Router struct {
	cfg    *Config
	client rediswire.Client
	only   *batcher // of the only server; nil: there are several

	several rediswire.Cluster // the client, if it is of several servers
	cluster rediswire.Cluster // the client, if these redirect by slots
	seed    maphash.Seed      // of a ring, see slot

	// bySlot are the batchers of a cluster's slots as far as they are known; nil
	// for a ring, whose servers know no slots.
	bySlot        []atomic.Pointer[batcher]
	ready         atomic.Bool  // the client finds servers at once
	searchBreaker *breaker     // of the search for servers
	reloadAt      atomic.Int64 // from when on the topology may be loaded again

	mu       sync.Mutex
	byServer map[rediswire.Server]*batcher
	search   *search // under way
	watch    watch
}

// Take implements [terms.Store]. The memory of refusals was asked before.
func (r *Router) Take(ctx context.Context, calls []terms.Call) error {
	return r.decideAll(ctx, script.Take, calls)
}

func (r *Router) Peek(ctx context.Context, calls []terms.Call) error {
	return r.decideAll(ctx, script.Peek, calls)
}

func (r *Router) Settle(ctx context.Context, charges []terms.Charge) error {
	return r.decideEach(ctx, script.Settle, charges)
}

func (r *Router) Return(c *terms.Charge, done terms.Returned) bool {
	if r.sharded() {
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

// decideAll executes an operation for calls, unless the keys are sharded.
func (r *Router) decideAll(ctx context.Context, op script.Operation, calls []terms.Call) error {
	if r.sharded() {
		return r.countAll(server.ErrSharded, calls)
	}
	return r.countAll(r.decide(ctx, op, calls, terms.ArrivalOf(calls)), calls)
}

// sharded reports whether no call may be decided, since the keys are sharded.
func (r *Router) sharded() bool { return r.cfg.Sharding != nil && r.cfg.Sharding.Found.Load() }

// decide executes calls of a caller that arrived at an instant, and fills in their results.
// The error is non-nil if none was executed. A settlement also makes the refusal memory forget
// the keys.
func (r *Router) decide(ctx context.Context, op script.Operation, calls []terms.Call, arrived time.Duration) error {
	if len(calls) == 0 {
		return nil
	}
	if op == script.Settle {
		defer r.forgetRefusals(calls)
	}
	if r.only != nil {
		return r.only.share(ctx, op, 0, calls, arrived)
	}
	if !r.together(calls) {
		r.decideParts(ctx, op, calls, eachSlot)
		return nil
	}
	key := calls[0].Charges[0].Key
	slot := r.slot(key)
	b, err := r.batcher(ctx, key, slot)
	if err != nil {
		return err
	}
	return r.retryHalfMoved(ctx, op, calls, b.share(ctx, op, r.groupOf(slot), calls, arrived))
}

// slot returns the slot of a key on a cluster, and on a ring a number that is the same for all
// keys with its hash tag. On a single server it is 0.
func (r *Router) slot(key []byte) int {
	if r.cluster != nil {
		return slotOf(key)
	}
	if r.several != nil {
		return int(maphash.Bytes(r.seed, hashTag(key)))
	}
	return 0
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

// share executes calls in batches that other callers share, as many at a time as are a batch's
// work, so that Redis is free for others in between. Once the caller's context or timeout is
// over, Redis is not asked about the rest.
func (b *batcher) share(ctx context.Context, op script.Operation, slot int, calls []terms.Call,
	arrived time.Duration) error {
	n, work := terms.Fit(calls)
	if n == len(calls) {
		return b.decide(ctx, op, slot, calls, work, arrived)
	}
	decided := false
	var last, late error // why the last part was not decided, and that the timeout is over
	for ; n > 0; n, work = terms.Fit(calls) {
		part := calls[:n]
		calls = calls[n:]
		err := cmp.Or(late, ctx.Err())
		if err == nil {
			err = b.decide(ctx, op, slot, part, work, clock.Now())
		}
		if err == nil {
			decided = true
			continue
		}
		if isLate(err) {
			late = err
		}
		last = err
		fail(part, err)
	}
	if decided {
		return nil
	}
	return last
}

// decide executes calls, which are so much work, together.
func (b *batcher) decide(ctx context.Context, op script.Operation, slot int, calls []terms.Call, work int64,
	arrived time.Duration) error {
	w := waiterOf(op, slot, calls, work, arrived)
	err := b.Do(ctx, w)
	if err == nil {
		w.copyResults(calls)
	}
	return err
}

// countAll reports calls that were not decided. It returns err, which is why none of them was.
func (r *Router) countAll(err error, calls []terms.Call) error {
	if err != nil {
		r.count(err, max(1, len(calls)))
		return err
	}
	for i := range calls {
		if calls[i].Err != nil {
			r.count(calls[i].Err, 1)
		}
	}
	return nil
}

// count reports calls that were not decided for one reason. Canceled calls are not counted.
func (r *Router) count(err error, calls int) {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return
	}
	r.cfg.Undecided(err, calls)
	r.doubt(err)
}

func (r *Router) forgetRefusals(calls []terms.Call) {
	for i := range calls {
		for j := range calls[i].Charges {
			r.forgetRefusal(calls[i].Charges[j].Key)
		}
	}
}

func (r *Router) forgetRefusal(key []byte) {
	if r.cfg.Refusals != nil {
		r.cfg.Refusals.Forget(key)
	}
}
