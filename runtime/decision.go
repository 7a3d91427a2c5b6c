package runtime

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Decision is the answer to one call. It is a plain value: copies of a charged decision can
// be settled once between them, see [Limiter.Settle].
type Decision struct {
	// Allowed reports whether the call may go on.
	Allowed bool
	// Source is who decided.
	Source rule.Source
	// Blocked reports that the call is refused by a block, which this refusal or an earlier one
	// began, see [Rule.Block]. [Limiter.Peek] begins none.
	Blocked   bool
	leftQueue bool // the call has left a queue before its turn
	flag      uint16
	// Rule is the name of the limit that the other fields describe: the one that keeps the
	// caller out longest or, if the call is allowed, the one with the least left. It is empty
	// if the call had no limit to decide.
	Rule string
	// Limit is the max that held for this call, or the burst of a bucket.
	Limit int64
	// Remaining is how much of the limit is left. If the source is [rule.SourceLease] it is what was
	// left when the lease was taken, and what is left of the lease.
	Remaining int64
	// RetryAfter is 0 if the call is allowed. Otherwise it is the time until a call of this
	// cost would be admitted if no other call arrived, or [Never].
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call arrived.
	ResetAfter time.Duration

	flags        *terms.Flags // has the flag; nil: nothing was charged
	owner        *Limiter
	items        *ledger.Item // the first of the limits that were charged, if the call has several
	chargedLimit Limit        // the limit that was charged, if the call has one
	// When that was charged, if it was, and what else tells how much of it still counts.
	chargeTime, mark int64

	// Copies are made 16 bytes at a time. With 8 left over two writes overlap, and a copy of
	// the copy, as in d, err := Take(...), waits for both. So the size is a multiple of 16.
}

// String says what was decided, and nothing of who called.
func (d Decision) String() string {
	return fmt.Sprintf("allowed=%t source=%s blocked=%t rule=%q limit=%d remaining=%d retry_after=%v reset_after=%v",
		d.Allowed, d.Source, d.Blocked, d.Rule, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter)
}
