package runtime

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/receipts"
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
	// receipt is that on page and, above it, what tells the limits that were charged
	// from others.
	receipt uint32
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

	charged [MaxLimits]int64 // when each limit was charged, for Settle,
	marks   [MaxLimits]int64 // and the marks of these charges
	page    *receipts.Page   // nil if nothing was charged

	// Copies are made 16 bytes at a time. With 8 left over two writes overlap,
	// and a copy of the copy, as in d, err := Take(...), waits for both. So the
	// size is a multiple of 16.
}

// isCharged reports whether any limit was charged.
func (d *Decision) isCharged() bool { return d.charged != [MaxLimits]int64{} }

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
	switch s {
	case SourceNone:
		return "none"
	case SourceStore:
		return "store"
	case SourceRecalled:
		return "recalled"
	case SourceLocal:
		return "local"
	case SourceFailure:
		return "failure"
	case SourceProcess:
		return "process"
	case SourceLease:
		return "lease"
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}

// fill fills in a decision about a call, and returns the place of the charge that it
// describes.
func (d *Decision) fill(charges []decide.Charge, tries []terms.Charge) (tightest int) {
	for i := range tries {
		c := &tries[i]
		if i > 0 && tighter(c, &tries[tightest]) {
			tightest = i
		}
		switch {
		case c.At == 0:
		case charges[i].Limits == 1: // most
			d.charged[0], d.marks[0] = c.At, c.Mark
		default:
			for set := charges[i].Limits; set != 0; set &= set - 1 {
				limit := bits.TrailingZeros8(set)
				d.charged[limit], d.marks[limit] = c.At, c.Mark
			}
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
