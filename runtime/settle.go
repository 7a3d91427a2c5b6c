package runtime

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// SettleTimeout is how long it may take to settle a decision on a [Store] that embeds
// one of this package's. Those bound it themselves: a [RedisStore] by its timeout.
const SettleTimeout = time.Second

// WithSettled returns the limit with the real cost of its call, which is known
// when the call has returned. [Limiter.Settle] then makes that the charge: what
// was reserved beyond it is given back, what is missing is charged. At 0 all is
// given back. It is at most [MaxCount], and to a [SlidingLog] at most
// [MaxLogCost] above the cost that was reserved; else, or if it is negative, it
// is [ErrInvalidLimit].
func (l Limit) WithSettled(n int64) Limit {
	if l.settled = n; n >= 0 {
		l.settled = min(n, MaxCount+1) + 1 // 0 is for limits without
	}
	return l
}

// settledCost returns what WithSettled was given, and whether it was called.
func (l *Limit) settledCost() (n int64, ok bool) {
	if l.settled < 0 {
		return l.settled, true
	}
	return l.settled - 1, l.settled != 0
}

// Settle corrects a decision when its call has returned. The decision is the one
// that Take returned, and limits are those that Take was given, in that order: other
// ones are [ErrNotCharged], and so is a decision of another Limiter. A limit that has a
// settled cost, see [Limit.WithSettled], is charged that in place of the cost that was
// reserved. The permits of a [Concurrency] are returned. The charges of the other limits
// stay.
//
// Events that are given back no longer count. Those that have left the window since
// are passed over, and of a bucket those that have drained: what it holds drains evenly,
// so a call gives back what is left of its own charge, and at once all of it. In a queue,
// a [LeakyBucket] with a Wait, a call gives back time in line only if nobody is behind it,
// and one event's time stays taken, since its turn has begun.
//
// Missing events are charged as of now, even if the limit has no room for them. Then the
// caller is in debt: its next calls are denied until the limit has room again, and their
// RetryAfter says when. A bucket drains a debt at its rate, and never owes more than
// drains in 142 years. In a window a debt counts until it leaves the window like any
// other charge.
//
// A decision is settled at most once: Settle of a decision that was settled
// before, or of a copy, returns [ErrSettled] and changes nothing. On an
// [ErrInvalidLimit] nothing changes either, but permits are returned. A decision that
// charged nothing can be settled any number of times, to no effect. Any other error
// comes from the store. Some limits may have been settled then, so the decision counts
// as settled.
//
// Settling does not end with ctx: it goes on when the caller's deadline has
// passed or the caller was cancelled. The store bounds its time, or
// [SettleTimeout].
func (l *Limiter) Settle(ctx context.Context, d Decision, limits ...Limit) error {
	b := settle.NewBatch()
	defer b.Free()
	err := l.settlement(b, &d, limits)
	if len(b.Charges) == 0 {
		return err
	}
	l.settler.Now(ctx, d.Source == SourceLocal, b)
	return errors.Join(err, terms.Errors(b.Charges))
}

// SettleLater is [Limiter.Settle] for callers that have no use for its error. It
// returns at once, and a goroutine settles the decision together with others. If
// 4,096 charges wait for that already, it settles this decision itself before it
// returns, together with some of those. Errors reach the observers and the log.
// [Limiter.Close] waits for decisions that are not settled yet; a process that ends
// without it leaves the costs as they were reserved.
func (l *Limiter) SettleLater(ctx context.Context, d Decision, limits ...Limit) {
	if d.page == nil {
		return // nothing was charged
	}
	b := settle.NewBatch()
	defer b.Free()
	if err := l.settlement(b, &d, limits); err != nil {
		i := slices.IndexFunc(limits, func(limit Limit) bool { return limit.rule != nil })
		if i >= 0 {
			l.events.unsettled(ctx, limits[i].rule, err)
		}
	}
	switch {
	case len(b.Charges) == 0: // nothing is left to settle
	case d.Source == SourceLocal || memoryOf(l.store) != nil:
		l.settler.AtOnce(ctx, d.Source == SourceLocal, b)
	default:
		l.settler.Later(ctx, b)
	}
}

// Refund is [Limiter.Settle] at a cost of 0 for every limit: it gives back the
// charges of a call that turned out not to count, because the guarded operation
// failed, say.
func (l *Limiter) Refund(ctx context.Context, d Decision, limits ...Limit) error {
	var free [MaxLimits]Limit
	n := min(len(limits), MaxLimits)
	for i := range n {
		free[i] = limits[i].WithSettled(0)
	}
	return l.Settle(ctx, d, free[:n]...)
}

// settlement fills in what is to be settled of a decision, which then counts as
// settled. If there is an error it is permits only, or nothing.
func (l *Limiter) settlement(b *settle.Batch, d *Decision, limits []Limit) error {
	if d.page != nil && d.receipt&^receipts.Mask != l.mark(d, limits) {
		return ErrNotCharged
	}
	found, err := l.differences(b, d, limits)
	if err != nil {
		// A permit would be renewed for as long as the process runs.
		b.Keep(func(_ *plan.Plan, c *terms.Charge) bool { return c.Algorithm == terms.Permits })
		found = len(b.Charges) > 0
	}
	nothing := func(*plan.Plan, *terms.Charge) bool { return false }
	switch {
	case !found:
		return err
	case d.Source != SourceLocal && l.store == nil:
		b.Keep(nothing)
		return decide.ErrNoStore
	case d.page != nil && !d.page.Use(uint16(d.receipt&receipts.Mask)):
		b.Keep(nothing)
		return ErrSettled
	case d.Source != SourceLocal:
		l.settler.Return(b)
	}
	return err
}

// issue gives a decision that has charged limits a receipt, and notes their mark.
func (l *Limiter) issue(d *Decision, mark uint32, page *receipts.Page, receipt uint16) {
	d.page, d.receipt = page, mark&^receipts.Mask|uint32(receipt)
}

// mark returns what tells the limits that a decision has charged from others, but for
// one in a million: a hash of their rules, keys and costs, in bits that a receipt leaves
// free. Each limiter has hashes of its own.
func (l *Limiter) mark(d *Decision, limits []Limit) (mark uint32) {
	for i := range limits[:min(len(limits), MaxLimits)] {
		if limit := &limits[i]; d.charged[i] != 0 && limit.rule != nil {
			mark += limit.mark(maphash.String(l.seed, limit.rule.Name)) * uint32(2*i+1)
		}
	}
	return mark &^ receipts.Mask
}

// mark returns a hash of the limit, of whose rule's name it is given one. It takes a
// third of the time of package maphash, and nobody gains by two keys with one hash.
func (l *Limit) mark(hash uint64) uint32 {
	const golden = 0x9E3779B97F4A7C15
	key := l.key.bytes()
	hash = (hash ^ uint64(l.cost)) * golden
	for ; len(key) >= 8; key = key[8:] {
		hash = (hash ^ hash>>32 ^ binary.LittleEndian.Uint64(key)) * golden
	}
	for _, b := range key {
		hash = hash<<8 + hash>>56 ^ uint64(b)
	}
	hash *= golden
	return uint32(hash >> 32)
}

// differences fills in what is to be settled of a decision, and reports whether
// any limit is, if only at the cost that was reserved. The error is that of a limit
// that cannot be settled.
func (l *Limiter) differences(b *settle.Batch, d *Decision, limits []Limit) (found bool, invalid error) {
	for i := range limits[:min(len(limits), MaxLimits)] {
		limit := &limits[i]
		settled, ok := limit.settledCost()
		if limit.rule != nil && limit.rule.Algorithm == Concurrency {
			settled, ok = 0, true
		}
		if d.charged[i] == 0 || limit.cost == 0 || !ok {
			continue
		}
		p, err := l.planToSettle(limit)
		if err == nil {
			err = ruleOf(p).invalid(p.Numbers.CheckSettled(limit.cost, settled))
		}
		if err != nil {
			invalid = cmp.Or(invalid, err)
			continue
		}
		found = true
		if p.Queues() && !d.left {
			settled = max(settled, 1) // its turn has begun, so that the next one is window/max away
		}
		if settled != limit.cost {
			l.difference(b, p, limit, settled, d.charged[i], d.marks[i], d.Source == SourceLocal)
		}
	}
	return found, invalid
}

// planToSettle returns the plan for a limit that was charged, also if its rule is switched
// off by now.
func (l *Limiter) planToSettle(limit *Limit) (*plan.Plan, error) {
	rule, max, _ := l.overridden(limit)
	p, err := l.planFor(limit, rule, max)
	if err != nil && rule != nil && rule.Algorithm == Concurrency {
		// It may be that of the call's max, which an override has hidden before.
		if err = rule.check(1, limit.cost); err == nil {
			return l.plan(rule, limit.cost), nil
		}
	}
	if err == nil && p.Max == 0 {
		return l.plan(rule, 1), nil
	}
	return p, err
}

// difference adds what a limit's charge, which was made at a time and has a mark, is to
// grow by. Local says that this process alone has made it.
func (l *Limiter) difference(b *settle.Batch, p *plan.Plan, limit *Limit, settled, at, mark int64, local bool) {
	key := b.Key(p, limit.key.bytes())
	made := limit.cost
	if local {
		p = p.Share
		made = min(made, p.Capacity)
	}
	if i := b.On(key, at); i >= 0 { // as when it was made
		o := &b.Charges[i]
		settled += o.Charged + o.Cost
		if p.Max < b.Plans[i].Max {
			b.Plans[i] = b.Plans[i].AtMax(p.Max)
		}
		p, made = b.Plans[i], max(o.Charged, made, min(o.Charged+made, b.Plans[i].Capacity))
		b.Charges[i] = p.Units(o.Key, made, made-settled, at, mark)
		return
	}
	b.Add(p, p.Units(key, made, made-settled, at, mark))
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
