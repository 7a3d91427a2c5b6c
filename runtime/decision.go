package runtime

import (
	"context"
	"errors"
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

// SettleTimeout is how long it may take to settle a decision on a [Store] that embeds one of
// this package's. Those bound it themselves: a [RedisStore] by its timeout.
const SettleTimeout = time.Second

// Settle corrects a decision that [Limiter.Take] of the same Limiter has made, when its call
// has returned and its real cost is known. Costs are those of the limits that Take was given,
// in that order. A cost becomes the charge of its limit: an excess is refunded, a shortfall is
// charged. A limit whose cost is below 0 or missing keeps its charge. The permits of a
// [Concurrency] are returned, whatever their cost is, and what a [Rule.Reserve] holds is no
// longer renewed.
//
// A cost is at most [rule.MaxCount], to a [FixedWindow] at most [rule.MaxAmount], and to a [SlidingLog]
// at most [rule.MaxLogCost] above the one that was reserved, or it is [ErrInvalidLimit].
//
// Refunded events no longer count. Nothing is refunded of events that have left the window, or
// have drained from a bucket: a bucket drains evenly, so a call is refunded what is left of its
// own charge, and at once all of it. Layered buckets whose window an override has changed since
// are others: the charge stays in those of before until it leaves them. In a queue, a
// [LeakyBucket] with a Wait, a call leaves its place to the next one if somebody is behind it, and one
// event's time stays charged, since its turn has begun.
//
// Missing events are charged as of now, even if the limit has no room for them, unless the
// rule's [rule.Debt] says otherwise. The next calls are then refused until the limit has room again,
// and their RetryAfter says when. A bucket never owes more than drains in 142 years, and a
// [FixedWindow] never counts more than [rule.MaxAmount].
//
// A decision is settled at most once: Settle of a decision that was settled before, or of a
// copy, returns [ErrSettled] and changes nothing. On an [ErrInvalidLimit] nothing changes
// either, but permits are returned. A decision that charged nothing can be settled any number
// of times, to no effect. Any other error comes from the store. Some limits may have been
// settled then, so the decision counts as settled.
//
// Settling does not end with ctx: it goes on when the caller's deadline has passed or the
// caller was cancelled. The store bounds its time, or [SettleTimeout].
func (l *Limiter) Settle(ctx context.Context, d Decision, costs ...int64) error {
	k, err := d.kept(l)
	if err != nil || k.Flags == nil { // nothing was charged
		return err
	}
	b := ledger.NewSettlement()
	defer b.Free()
	err = l.ledger.Fill(b, &k, costs)
	if len(b.Charges) == 0 {
		return err
	}
	l.ledger.SettleNow(ctx, b)
	return errors.Join(err, terms.Errors(b.Charges))
}

// SettleLater is [Limiter.Settle] for callers that have no use for its error, which observers
// and the log receive. It returns at once. The decision is settled with the next request to
// its Redis server, ahead of what that asks, or by itself within a millisecond. So no call of
// this process is refused for what was given back before it began, while two trips to Redis
// take less than half of its timeout; another process sees it a millisecond and a trip later.
// If 4,096 charges are not settled yet it settles this decision itself before it returns.
// [Limiter.Close] waits for decisions that are not settled yet; a process that ends without it
// leaves the costs as they were reserved.
func (l *Limiter) SettleLater(ctx context.Context, d Decision, costs ...int64) {
	if d.flags == nil {
		return // nothing was charged
	}
	b := ledger.NewSettlement()
	defer b.Free()
	k, err := d.kept(l)
	if err == nil {
		err = l.ledger.Fill(b, &k, costs)
	}
	if err != nil {
		limit, _, _ := k.Charge(0)
		l.events.Unsettled(ctx, limit.Rule, ClassOf(err), err)
	}
	l.ledger.SettleLater(ctx, b)
}

// Refund is [Limiter.Settle] at a cost of 0 for every limit: it refunds the charges of a call
// that turned out not to count, because the guarded operation failed, say.
func (l *Limiter) Refund(ctx context.Context, d Decision) error {
	var free [rule.MaxLimits]int64
	return l.Settle(ctx, d, free[:]...)
}

// kept returns what the decision keeps to be settled by. The error says that another limiter has made it.
func (d *Decision) kept(l *Limiter) (k ledger.Kept, err error) {
	k.Limit, k.Items, k.Flag, k.Flags = d.chargedLimit, d.items, d.flag, d.flags
	k.Cost, k.Charged, k.At, k.Mark = d.chargedLimit.Cost, d.chargedLimit.Cost, d.chargeTime, d.mark
	k.Local, k.Left = d.Source == rule.SourceLocal, d.leftQueue
	if d.flags != nil && d.owner != l {
		return k, ErrOtherLimiter
	}
	return k, nil
}

// settleContext returns a context with the values of ctx that does not end with it.
func (l *Limiter) settleContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if !l.store.builtIn {
		return context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	}
	if l.store.memory == nil { // which has no use for it
		ctx = context.WithoutCancel(ctx)
	}
	return ctx, func() {}
}
