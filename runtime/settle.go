package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
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
// A cost is at most [MaxCount], to a [FixedWindow] at most [MaxAmount], and to a [SlidingLog]
// at most [MaxLogCost] above the one that was reserved, or it is [ErrInvalidLimit].
//
// Refunded events no longer count. Nothing is refunded of events that have left the window, or
// have drained from a bucket: a bucket drains evenly, so a call is refunded what is left of its
// own charge, and at once all of it. Layered buckets whose window an override has changed since
// are others: the charge stays in those of before until it leaves them. In a queue, a
// [LeakyBucket] with a Wait, a call is refunded time in line only if nobody is behind it, and one
// event's time stays charged, since its turn has begun.
//
// Missing events are charged as of now, even if the limit has no room for them, unless the
// rule's [Debt] says otherwise. The next calls are then denied until the limit has room again,
// and their RetryAfter says when. A bucket never owes more than drains in 142 years, and a
// [FixedWindow] never counts more than [MaxAmount].
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
	b := settle.NewBatch()
	defer b.Free()
	err := l.settlement(b, &d, costs)
	if len(b.Charges) == 0 {
		return err
	}
	l.settler.Now(ctx, d.Source == SourceLocal, b)
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
	if d.page == nil {
		return // nothing was charged
	}
	b := settle.NewBatch()
	defer b.Free()
	if err := l.settlement(b, &d, costs); err != nil {
		limit, _, _ := d.charged(0)
		l.events.unsettled(ctx, limit.rule, err)
	}
	l.settleSoon(ctx, d.Source == SourceLocal, b)
}

// settleSoon settles charges, which local says were made by this process alone, and tells the
// observers of errors.
func (l *Limiter) settleSoon(ctx context.Context, local bool, b *settle.Batch) {
	switch {
	case len(b.Charges) == 0: // nothing is left to settle
	case local || storeOf[MemoryStore](l.store) != nil:
		l.settler.Along(ctx, local, b)
	default:
		l.settler.Later(ctx, b)
	}
}

// Refund is [Limiter.Settle] at a cost of 0 for every limit: it refunds the charges of a call
// that turned out not to count, because the guarded operation failed, say.
func (l *Limiter) Refund(ctx context.Context, d Decision) error {
	var free [MaxLimits]int64
	return l.Settle(ctx, d, free[:]...)
}

// charged returns the i-th limit of the decision, whose at is 0 if nothing was charged to it, and
// how much of its cost was. It reports false if there are fewer.
func (d *Decision) charged(i int) (limit Limit, made int64, ok bool) {
	if d.each == nil {
		return d.one, d.one.cost, i == 0
	}
	c := d.each
	for ; i > 0 && c != nil; i-- {
		c = c.Next
	}
	if c == nil {
		return Limit{}, 0, false
	}
	key := Key{keytext.ParsedParts(string(c.Parts))}
	if c.Invalid != nil {
		key.parts.Fail(c.Invalid)
	}
	return Limit{(*Rule)(c.Rule), c.Cost, c.Max, c.Period, c.At, c.Mark, key}, c.Charged, true
}

// settlement fills in what is to be settled of a decision, which then counts as settled. If
// there is an error it is permits only, or nothing.
func (l *Limiter) settlement(b *settle.Batch, d *Decision, costs []int64) error {
	if d.page == nil {
		return nil // nothing was charged
	}
	if d.by != l {
		return ErrOtherLimiter
	}
	var found bool
	var err error
	for i := 0; ; i++ {
		limit, charged, ok := d.charged(i)
		if !ok {
			break
		}
		cost := int64(-1)
		if i < len(costs) {
			cost = costs[i]
		}
		made := settle.Made{Cost: limit.cost, Charged: charged, At: limit.at, Mark: limit.mark, Local: d.Source == SourceLocal, Left: d.left}
		settles, invalid := l.correct(b, &limit, made, cost)
		found, err = found || settles, cmp.Or(err, invalid)
	}
	if err != nil {
		// The call's permits and reservations would be renewed for as long as the process runs.
		b.Keep(func(_ *plan.Plan, c *terms.Charge) bool {
			if c.Reserve > 0 {
				c.Cost = 0
			}
			return c.Lapses()
		})
		found = len(b.Charges) > 0
	}
	switch {
	case !found:
		return err
	case !d.page.Use(d.receipt):
		b.Keep(func(*plan.Plan, *terms.Charge) bool { return false })
		return ErrSettled
	case d.Source != SourceLocal:
		l.settler.Return(b)
	}
	return err
}

// correct adds what is to be settled of a limit whose charge was made. A cost below 0 leaves
// it. It reports whether the limit is settled, if only at the cost that was reserved. The
// error says why it cannot be settled at the cost.
func (l *Limiter) correct(b *settle.Batch, limit *Limit, made settle.Made, cost int64) (settles bool, err error) {
	switch reserved := limit.rule.Reserve > 0; {
	case made.At == 0 || limit.cost == 0:
		return false, nil
	case limit.rule.Algorithm == Concurrency:
		cost = 0
	case cost < 0 && reserved:
		cost = limit.cost
	case cost < 0:
		return false, nil
	}
	p, err := l.planToSettle(limit)
	if err != nil {
		return false, err
	}
	err = b.Correct(p, limit.key.bytes(), made, cost)
	if err == nil {
		if cost == 0 && p.Terms.Algorithm != terms.Permits && p.Sample != nil && p.Sample.Return() {
			l.events.log.Find(report.AllRefunded, p.Name, "")
		}
		return true, nil
	}
	return p.Terms.Reserve > 0, ruleOf(p).invalid(err)
}

// planToSettle returns the plan for a limit that was charged, also if its rule is switched off
// by now.
func (l *Limiter) planToSettle(limit *Limit) (*plan.Plan, error) {
	rule, max, _ := l.overridden(limit)
	p, err := l.planFor(limit, rule, max)
	if err != nil && rule != nil && (rule.Algorithm == Concurrency || rule.Reserve > 0) {
		// The call's own max may be invalid, which an override has replaced before.
		if err = rule.check(1, limit.cost); err == nil {
			return l.plan(rule, limit.cost, limit.period), nil
		}
	}
	if err == nil && p.Max == 0 && p.Numbers.Way != plan.FixedWindow {
		return l.plan(rule, 1, limit.period), nil
	}
	return p, err
}

// detached returns a context with the values of ctx that does not end with it.
func (l *Limiter) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	switch l.store.(type) {
	case *MemoryStore: // has no use for it
		return ctx, func() {}
	case *RedisStore:
		return context.WithoutCancel(ctx), func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
}
