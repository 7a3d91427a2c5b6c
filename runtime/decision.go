package runtime

import (
	"context"
	"fmt"
	"math/bits"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Decision is the answer to one call. It is a plain value: copies of a charged
// decision can be settled once between them, see [Limiter.Settle].
type Decision struct {
	// Allowed reports whether the call may go on.
	Allowed bool
	// Source is who decided.
	Source Source
	// Blocked reports that the call is denied by a block, which this denial or an
	// earlier one began, see [Rule.Block]. [Limiter.Peek] begins none.
	Blocked bool
	left    bool // the call has left a queue before its turn
	receipt uint16
	// Rule is the name of the limit that the other fields describe: the one
	// that keeps the caller out longest or, if the call is allowed, the one
	// with the least left. It is empty if the call had no limit to decide.
	Rule string
	// Limit is the max that held for this call, or the burst of a bucket.
	Limit int64
	// Remaining is how much of the limit is left. If the source is [SourceLease] it
	// is what was left when the lease was taken, and what is left of the lease.
	Remaining int64
	// RetryAfter is 0 if the call is allowed. Otherwise it is the time until
	// a call of this cost would be admitted if no other call arrived, or
	// [Never].
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call
	// arrived.
	ResetAfter time.Duration

	page *receipts.Page // where the receipt is from; nil: nothing was charged
	by   *Limiter
	each *settle.Item // the first of the limits that were charged, if the call has several
	one  Limit        // the limit that was charged, if the call has one

	// Copies are made 16 bytes at a time. With 8 left over two writes overlap,
	// and a copy of the copy, as in d, err := Take(...), waits for both. So the
	// size is a multiple of 16.
}

// String says what was decided, and nothing of who called.
func (d Decision) String() string {
	return fmt.Sprintf("allowed=%t source=%s blocked=%t rule=%q limit=%d remaining=%d retry_after=%v reset_after=%v",
		d.Allowed, d.Source, d.Blocked, d.Rule, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter)
}

// A Source is who made a [Decision].
type Source uint8

const (
	// SourceNone means that no count was read: the limiter is switched off, no
	// limit applies, every cost is 0, or the call can never be admitted.
	SourceNone Source = iota
	// SourceStore means that the limiter's store decided.
	SourceStore
	// SourceRecalled means that an earlier denial by the store is still in
	// force. The store was not asked again.
	SourceRecalled
	// SourceLocal means that the store gave no answer and this process
	// decided alone.
	SourceLocal
	// SourceFailure means that nothing could decide, and the failure policy
	// did.
	SourceFailure
	// SourceProcess means that the process's own cap denied the call before
	// the store was asked, see [WithProcessCap].
	SourceProcess
	// SourceLease means that this process decided by a lease, which the store has
	// charged before, see [Rule.Lease].
	SourceLease
)

// String returns the source in lower case.
func (s Source) String() string {
	return spelled("Source", uint8(s), "none", "store", "recalled", "local", "failure", "process", "lease")
}

// fill fills in a decision about a call, and returns the place of the charge that it
// describes.
func (d *Decision) fill(charges []decide.Charge, tries []terms.Charge) (tightest int) {
	for i := 1; i < len(tries); i++ {
		if tighter(&tries[i], &tries[tightest]) {
			tightest = i
		}
	}
	c := &tries[tightest]
	p := charges[tightest].By(c)
	if d.Source = Source(c.Source); len(tries) > 1 && !c.Recalled {
		d.Source = Source(decide.Source(tries))
	}
	d.Allowed = c.Allowed || c.Shadow
	d.Rule, d.Limit, d.Remaining, d.ResetAfter = p.Name, p.Capacity, c.Remaining, c.ResetAfter
	if !d.Allowed {
		d.RetryAfter, d.Blocked = c.RetryAfter, c.Blocked
	}
	return tightest
}

// tighter reports whether c matters more to the caller than o: a limit that
// denies comes before one that does not, and one in shadow mode comes last.
func tighter(c, o *terms.Charge) bool {
	if c.Shadow != o.Shadow {
		return !c.Shadow
	}
	if c.Allowed && o.Allowed {
		return c.Remaining < o.Remaining
	}
	return c.RetryAfter > o.RetryAfter
}

// decides reports whether anybody may listen to decisions.
func (e *events) decides() bool { return e.decisions || recording.Load() }

// keepOne notes what a call with one limit was charged, for Settle.
func (d *Decision) keepOne(limit *Limit, c *terms.Charge) {
	d.one = *limit
	d.one.at, d.one.mark = c.At, c.Mark
}

// keep notes that a call was decided, for a Meter, and what one limit was charged, for Settle.
func (d *Decision) keep(l *Limiter, c *decide.Call, limits []Limit) {
	if len(limits) == 0 {
		return
	}
	d.by, d.page, d.receipt = l, c.Page, c.Receipt
	if len(limits) == 1 {
		if d.one = limits[0]; len(c.Tries) == 1 {
			d.keepOne(&limits[0], &c.Tries[0])
		}
	}
}

// keepEach notes what each of several limits was charged.
func (d *Decision) keepEach(req *request, limits []Limit) {
	if d.by == nil || len(limits) == 1 {
		return
	}
	items := req.shelf.Items(len(limits))
	d.each = &items[0]
	for i := range limits {
		limit, o := &limits[i], &items[i]
		o.Rule, o.Cost, o.Max, o.Period = unsafe.Pointer(limit.rule), limit.cost, limit.max, limit.period
		o.Parts, o.Invalid = req.shelf.Parts(limit.key.bytes()), limit.key.invalid()
	}
	for i := range req.Tries {
		for set := req.Charges[i].Limits; set != 0; set &= set - 1 {
			charged := &items[bits.TrailingZeros8(set)]
			charged.At, charged.Mark = req.Tries[i].At, req.Tries[i].Mark
		}
	}
}

// exceed tells a call of the limits in soft mode that have no room for it.
func exceed(ctx context.Context, charges []decide.Charge, tries []terms.Charge) {
	for i := range charges {
		c := &tries[i]
		p := charges[i].By(c)
		if c.Allowed || ruleOf(p).Mode != ModeSoft {
			continue
		}
		e, _ := ctx.Value(exceededKey{}).(*exceeded)
		if e == nil {
			return
		}
		e.mu.Lock()
		e.found = append(e.found, &LimitedError{
			Rule: p.Name, Limit: p.Capacity, Remaining: c.Remaining, RetryAfter: c.RetryAfter, Blocked: c.Blocked, rule: ruleOf(p),
		})
		e.mu.Unlock()
	}
}
