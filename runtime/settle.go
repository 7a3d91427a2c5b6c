package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

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
	b := ledger.NewSettlement()
	defer b.Free()
	err := l.settlement(b, &d, costs)
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
	if err := l.settlement(b, &d, costs); err != nil {
		limit, _, _ := d.charged(0)
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

// charged returns the i-th limit of the decision, and what was charged to it: nothing if its At
// is 0. It reports false if there are fewer.
func (d *Decision) charged(i int) (limit Limit, made ledger.Made, ok bool) {
	made = ledger.Made{Cost: d.chargedLimit.Cost, Charged: d.chargedLimit.Cost, At: d.chargeTime, Mark: d.mark,
		Local: d.Source == rule.SourceLocal, Left: d.leftQueue}
	if d.items == nil {
		return d.chargedLimit, made, i == 0
	}
	c := d.items
	for ; i > 0 && c != nil; i-- {
		c = c.Next
	}
	if c == nil {
		return Limit{}, made, false
	}
	parts := keytext.ParsedParts(string(c.Parts))
	if c.Weight != 0 {
		tenant := keytext.ParsedParts(string(c.Tenant))
		parts.SetTenant(&tenant, c.Weight)
	}
	if c.Invalid != nil {
		parts.Fail(c.Invalid)
	}
	made.Cost, made.Charged, made.At, made.Mark = c.Cost, c.Charged, c.At, c.Mark
	return rule.Engine.MakeLimit(c.Rule, parts, c.Cost, c.Max, c.Period), made, true
}

// settlement fills in what is to be settled of a decision, which then counts as settled. If
// there is an error it is permits only, or nothing.
func (l *Limiter) settlement(b *ledger.Settlement, d *Decision, costs []int64) error {
	if d.flags == nil {
		return nil // nothing was charged
	}
	if d.owner != l {
		return ErrOtherLimiter
	}
	b.Local = d.Source == rule.SourceLocal
	var found bool
	var err error
	for i := 0; ; i++ {
		limit, made, ok := d.charged(i)
		if !ok {
			break
		}
		cost := int64(-1)
		if i < len(costs) {
			cost = costs[i]
		}
		settles, invalid := l.correct(b, &limit, made, cost)
		found, err = found || settles, cmp.Or(err, invalid)
	}
	if err != nil {
		// The call's permits and reservations would be renewed for as long as the process runs.
		b.Filter(func(_ *plan.Plan, c *terms.Charge) bool {
			if c.Reserve > 0 {
				c.Cost = 0
			}
			return c.Lapses()
		})
		found = len(b.Charges) > 0
	}
	if found && !d.flags.Set(d.flag) {
		b.Filter(func(*plan.Plan, *terms.Charge) bool { return false })
		return ErrSettled
	}
	return err
}

// correct adds what is to be settled of a limit whose charge was made. A cost below 0 leaves
// it. It reports whether the limit is settled, if only at the cost that was reserved. The
// error says why it cannot be settled at the cost.
func (l *Limiter) correct(b *ledger.Settlement, limit *Limit, made ledger.Made, cost int64) (settles bool, err error) {
	reserved := limit.Rule.Reserve > 0
	if made.At == 0 || limit.Cost == 0 {
		return false, nil
	}
	if limit.Rule.Algorithm == Concurrency {
		cost = 0
	} else if cost < 0 && reserved {
		cost = limit.Cost
	} else if cost < 0 {
		return false, nil
	}
	p, err := l.plans.Charged(limit)
	if err != nil {
		return false, err
	}
	err = b.Correct(p, rule.Engine.PartsOf(limit), made, cost)
	if err == nil {
		if cost == 0 && !p.Terms.Is(algorithm.Lends) && p.Sample != nil && p.Sample.Return() {
			l.events.Log.Find(report.AllRefunded, p.Name, "")
		}
		return true, nil
	}
	return p.Terms.Reserve > 0, rule.Engine.Invalid(p.Rule, err)
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
