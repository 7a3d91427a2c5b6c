package runtime

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/settle"
)

// A Decision is the answer to one call. It is a plain value: copies of a charged decision can
// be settled once between them, see [Limiter.Settle].
type Decision struct {
	// Allowed reports whether the call may go on.
	Allowed bool
	// Source is who decided.
	Source Source
	// Blocked reports that the call is denied by a block, which this denial or an earlier one
	// began, see [Rule.Block]. [Limiter.Peek] begins none.
	Blocked bool
	left    bool // the call has left a queue before its turn
	receipt uint16
	// Rule is the name of the limit that the other fields describe: the one that keeps the
	// caller out longest or, if the call is allowed, the one with the least left. It is empty
	// if the call had no limit to decide.
	Rule string
	// Limit is the max that held for this call, or the burst of a bucket.
	Limit int64
	// Remaining is how much of the limit is left. If the source is [SourceLease] it is what was
	// left when the lease was taken, and what is left of the lease.
	Remaining int64
	// RetryAfter is 0 if the call is allowed. Otherwise it is the time until a call of this
	// cost would be admitted if no other call arrived, or [Never].
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call arrived.
	ResetAfter time.Duration

	page *receipts.Page // where the receipt is from; nil: nothing was charged
	by   *Limiter
	each *settle.Item // the first of the limits that were charged, if the call has several
	one  Limit        // the limit that was charged, if the call has one

	// Copies are made 16 bytes at a time. With 8 left over two writes overlap, and a copy of
	// the copy, as in d, err := Take(...), waits for both. So the size is a multiple of 16.
}

// String says what was decided, and nothing of who called.
func (d Decision) String() string {
	return fmt.Sprintf("allowed=%t source=%s blocked=%t rule=%q limit=%d remaining=%d retry_after=%v reset_after=%v",
		d.Allowed, d.Source, d.Blocked, d.Rule, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter)
}

// A Source is who made a [Decision].
type Source uint8

const (
	// SourceNone means that no count was read: the limiter is switched off, no limit applies,
	// every cost is 0 and no key can be blocked, or the call can never be admitted.
	SourceNone Source = iota
	// SourceStore means that the limiter's store decided.
	SourceStore
	// SourceRecalled means that an earlier denial by the store is still in force. The store was
	// not asked again.
	SourceRecalled
	// SourceLocal means that the store gave no answer and this process decided alone.
	SourceLocal
	// SourceFailure means that nothing could decide, and the failure policy did.
	SourceFailure
	// SourceProcess means that the process's own cap denied the call before the store was
	// asked, see [WithProcessCap].
	SourceProcess
	// SourceLease means that this process decided by a lease, which the store has charged
	// before, see [Rule.Lease].
	SourceLease
)

// String returns the source in lower case.
func (s Source) String() string {
	return spelled("Source", uint8(s), "none", "store", "recalled", "local", "failure", "process", "lease")
}
