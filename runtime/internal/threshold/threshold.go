// Package threshold reports keys that have used a share of what a period of the calendar
// admits: each share once a period, over all processes.
//
// Every decision says how much of its limit is used. So each process sees that a key has
// passed a share, whether by one charge, by several at once, by a settled cost or by a lease.
// The store admits one report for each key, share and period: a process charges a marker key
// before it reports. So processes need no other agreement, and a refund that takes the key
// below the share causes no second report.
//
// A process charges a marker once. Its memory of the markers is bounded: it charges one that
// it has forgotten again, and the store then denies a second report.
package threshold

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Percents are the shares that are reported.
var Percents = [...]int64{80, 100}

const (
	// known is how many reports a process remembers. They take 128 KiB.
	known = 1 << 14
	// most is how many requests to the store are in flight at a time. A share that is found
	// meanwhile is left to a later decision.
	most = 64
	// hour is in microseconds. Ends of periods that differ by less are one.
	hour = 60 * 60 * 1_000_000
)

// A Watch finds keys over a share. Its fields are set before the first decision.
type Watch struct {
	// Store is the one that has decided.
	Store terms.Store
	// Bound returns a context for a request that does not end with the context of its call.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	// Report is called once for each key, share and period.
	Report func(context.Context, Reached)
	// Contain, deferred, ends a panic of the store.
	Contain func()

	reported atomic.Pointer[[known]atomic.Uint64]
	mu       sync.Mutex
	inFlight int // requests in flight
	ended    bool
	running  sync.WaitGroup
}

// A Reached is a key over a share.
type Reached struct {
	Plan        *plan.Plan
	Key         []byte // whole
	Percent     int64
	Used, Limit int64
	ResetAfter  time.Duration
}

// A notification identifies a report: a key, a share, a period and a limit.
type notification struct {
	key                  uint64 // its hash
	percent, ends, limit int64
}

var seed = maphash.MakeSeed()

// Look reports the shares that a decided charge has passed. It keeps nothing of the charge, and
// asks the store in a goroutine of its own.
func (w *Watch) Look(ctx context.Context, p *plan.Plan, c *terms.Charge) {
	used := p.Capacity - c.Remaining
	if c.Period == nil || c.Blocked || used <= 0 || c.Source != terms.ByStore && c.Source != terms.ByLease {
		return
	}
	for _, percent := range Percents {
		if 100*used < percent*p.Capacity { // at most 100 * 2^53
			return
		}
		w.report(ctx, p, c, percent)
	}
}

// report reports a share that is used, unless this process knows that it was reported.
func (w *Watch) report(ctx context.Context, p *plan.Plan, c *terms.Charge, percent int64) {
	reported := w.reported.Load()
	if reported == nil {
		w.reported.CompareAndSwap(nil, new([known]atomic.Uint64))
		reported = w.reported.Load()
	}
	end, exact := endOf(c)
	n := notification{maphash.Bytes(seed, c.Key), percent, (end + hour/2) / hour, limitOf(p)}
	hash := maphash.Comparable(seed, n) | 1 // 0 is nothing
	slot := &reported[hash>>32%known]
	if slot.Load() == hash || !w.begin() {
		return
	}
	if !exact {
		end = 0
	}
	slot.Store(hash)
	own := *p // p may be found through memory on its caller's stack, which must stay there
	r := Reached{Plan: &own, Key: append([]byte(nil), c.Key...), Percent: percent, Used: p.Capacity - c.Remaining, Limit: p.Capacity, ResetAfter: c.ResetAfter}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer w.end()
		defer w.Contain()
		if first, err := w.first(ctx, &r, end); first {
			w.Report(ctx, r)
		} else if err != nil {
			slot.CompareAndSwap(hash, 0) // a later decision asks again
		}
	}()
}

// endOf returns when the period of a decision ends, by the clock of the store. A denial, or a
// decision of a lease, has no time of the store. The end is then by this process's clock, and
// not exact.
func endOf(c *terms.Charge) (end int64, exact bool) {
	if c.At == 0 || c.Source == terms.ByLease {
		return time.Now().UnixMicro() + c.ResetAfter.Microseconds(), false
	}
	return c.At + c.ResetAfter.Microseconds(), true
}

// limitOf returns the limit that a report is about: a changed limit is reported again. A limit
// that follows the load counts as one.
func limitOf(p *plan.Plan) int64 {
	if p.Adapts {
		return 0
	}
	return p.Capacity
}

// first charges the marker, and reports whether no process has done so in the period with this
// end, which is 0 if it is not known.
func (w *Watch) first(ctx context.Context, r *Reached, end int64) (bool, error) {
	ctx, cancel := w.Bound(ctx)
	defer cancel()
	var c terms.Charge
	r.Plan.Charge(&c, fmt.Appendf(r.Key[:len(r.Key):len(r.Key)], "%s%d-%d", terms.ReportMark, r.Percent, limitOf(r.Plan)), 1)
	c.Label, c.Max, c.Shadow, c.Block, c.Holds = nil, 1, false, 0, false
	c.Algorithm, c.Reserve, c.Debt, c.Keep = terms.Calendar, 0, terms.Counts, 0 // a marker neither lapses nor is owed
	calls := []terms.Call{{Charges: []terms.Charge{c}}}
	if err := w.Store.Take(ctx, calls); err != nil {
		return false, err
	}
	found := &calls[0].Charges[0]
	if calls[0].Err != nil || !found.Allowed {
		return false, calls[0].Err
	}
	if end != 0 && found.At >= end { // the next period has begun meanwhile
		return false, w.Store.Reset(ctx, calls[0].Charges)
	}
	return true, nil
}

// begin reports whether one more request may be sent.
func (w *Watch) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.inFlight == most {
		return false
	}
	w.inFlight++
	w.running.Add(1)
	return true
}

func (w *Watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	w.running.Done()
}

// Close waits for the requests in flight, and lets none begin. The store, or Bound, bounds
// how long they take.
func (w *Watch) Close() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.running.Wait()
}
