package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/receipts"
)

// SettleTimeout is how long it may take to settle a decision on a [Store] of your
// own. The stores of this package bound it themselves: a [RedisStore] by its
// timeout.
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
	if l == nil {
		l = withoutStore
	}
	s := settlements.Get().(*settlement)
	defer s.free()
	err := l.settlement(s, &d, limits)
	if len(s.charges) == 0 {
		return err
	}
	return errors.Join(err, l.settle(ctx, d.Source, s.charges))
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

// A settlement is what is to be settled of a decision, and the memory for it.
type settlement struct {
	charges []Charge
	keys    []byte
}

var settlements = sync.Pool{New: func() any { return new(settlement) }}

func (s *settlement) free() {
	s.clear()
	settlements.Put(s)
}

// chargeOn returns the charge that was made together with another one, on the same key,
// or nil.
func (s *settlement) chargeOn(c *Charge) *Charge {
	for i := range s.charges {
		if o := &s.charges[i]; o.At == c.At && bytes.Equal(o.Key, c.Key) {
			return o
		}
	}
	return nil
}

// add adds a charge with a copy of its key.
func (s *settlement) add(c Charge) {
	start := len(s.keys)
	s.keys = append(s.keys, c.Key...)
	c.Key = s.keys[start:len(s.keys):len(s.keys)]
	s.charges = append(s.charges, c)
}

func (s *settlement) clear() {
	clear(s.charges)
	s.charges, s.keys = s.charges[:0], s.keys[:0]
}

// settlement fills in what is to be settled of a decision, which then counts as
// settled. If there is an error it is permits only, or nothing.
func (l *Limiter) settlement(s *settlement, d *Decision, limits []Limit) error {
	if d.page != nil && d.receipt&^receipts.Mask != l.mark(d, limits) {
		return ErrNotCharged
	}
	found, err := l.differences(s, d, limits)
	if err != nil {
		// A permit would be renewed for as long as the process runs.
		s.charges = slices.DeleteFunc(s.charges, func(c Charge) bool { return c.Rule.Algorithm != Concurrency })
		found = len(s.charges) > 0
	}
	if !found {
		return err
	}
	if d.Source != SourceLocal && l.store == nil {
		s.charges = s.charges[:0]
		return errNoStore
	}
	if d.page != nil && !d.page.Use(uint16(d.receipt&receipts.Mask)) {
		s.charges = s.charges[:0]
		return ErrSettled
	}
	if l.leases != nil && d.Source != SourceLocal {
		s.charges = l.leases.returned(s.charges)
	}
	return err
}

// issue gives a decision that has charged limits a receipt.
func (l *Limiter) issue(d *Decision, limits []Limit, page *receipts.Page, receipt uint16) {
	d.page, d.receipt = page, l.mark(d, limits)|uint32(receipt)
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
func (l *Limiter) differences(s *settlement, d *Decision, limits []Limit) (found bool, invalid error) {
	for i := range limits[:min(len(limits), MaxLimits)] {
		limit := &limits[i]
		settled, ok := limit.settledCost()
		if limit.rule != nil && limit.rule.Algorithm == Concurrency {
			settled, ok = 0, true
		}
		if d.charged[i] == 0 || limit.cost == 0 || !ok {
			continue
		}
		rule, limited, _, err := l.effective(limit) // also one that is switched off by now
		if err != nil && limit.rule != nil && limit.rule.Algorithm == Concurrency {
			// It may be that of the call's max, which an override has hidden before.
			err, limited = rule.check(1, limit.cost), limit.cost
		}
		if err == nil {
			err = rule.checkSettled(limit.cost, settled)
		}
		if err != nil {
			invalid = cmp.Or(invalid, err)
			continue
		}
		found = true
		if rule.queues() && !d.left {
			settled = max(settled, 1) // its turn has begun, so that the next one is window/max away
		}
		if settled == limit.cost {
			continue
		}
		start := len(s.keys)
		s.keys = appendKey(s.keys, l.namespace, rule, &limit.key)
		c := Charge{
			Rule: rule, Max: max(1, limited), Cost: limit.cost, Settled: settled,
			Result: Result{At: d.charged[i], Mark: d.marks[i]}, Key: s.keys[start:len(s.keys):len(s.keys)],
		}
		if d.Source == SourceLocal {
			c = l.share(c)
		}
		if o := s.chargeOn(&c); o != nil {
			o.Settled += c.Settled
			_ = o.join(&c) // as when it was made
			continue
		}
		s.charges = append(s.charges, c)
	}
	return found, invalid
}

// checkSettled returns an [ErrInvalidLimit] if a cost that was reserved cannot be
// settled at another.
func (r *Rule) checkSettled(reserved, settled int64) error {
	switch most := countings[r.counted()].cost; {
	case settled < 0:
		return fmt.Errorf("%w: rule %q: settled cost %d is negative", ErrInvalidLimit, r.Name, settled)
	case settled > MaxCount:
		return fmt.Errorf("%w: rule %q: settled cost is above %d", ErrInvalidLimit, r.Name, int64(MaxCount))
	case settled-reserved > most:
		return fmt.Errorf("%w: rule %q: settled cost %d is more than %d above the %d that were reserved, the most that a call may owe to a %v: reserve more, or count with a %v or a %v",
			ErrInvalidLimit, r.Name, settled, most, reserved, r.Algorithm, TokenBucket, SlidingCounter)
	}
	return nil
}

// settle settles charges that a source made.
func (l *Limiter) settle(ctx context.Context, source Source, charges []Charge) error {
	return joined(l.settleEach(ctx, source, charges))
}

// settleEach is settle with an error for each charge, or nil if there is none.
func (l *Limiter) settleEach(ctx context.Context, source Source, charges []Charge) (errs []error) {
	local := source == SourceLocal
	back := l.permits.withdraw(charges, local)
	ctx, cancel := l.detached(ctx)
	defer cancel()
	store := l.storeOf(local)
	if s, ok := store.(*RedisStore); ok {
		errs = s.settle(ctx, charges)
	} else if err := store.Settle(ctx, charges); err != nil {
		errs = slices.Repeat([]error{private.Hide(err)}, len(charges))
	}
	l.permits.returned(back, func(i int) error {
		if errs == nil {
			return nil
		}
		return errs[i]
	})
	return errs
}

// storeOf returns the store that has made a charge: the limiter's own if it is local.
func (l *Limiter) storeOf(local bool) Store {
	if local {
		return l.local
	}
	return l.store
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
