package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// fastKey is the longest key in bytes that a call on the fast path may have.
const fastKey = 144

// A fastPath is a part of a store that decides a charge without leaving the
// process and without keeping the charge. The charge is then on the caller's
// stack, and a call that needs nothing else takes half the time.
type fastPath struct {
	memory  *MemoryStore    // or nil
	denials *denials.Memory // of a RedisStore, or nil
}

func fastPathOf(store Store) fastPath {
	switch s := store.(type) {
	case *MemoryStore:
		return fastPath{memory: s}
	case *RedisStore:
		return fastPath{denials: s.cfg.Denials}
	}
	return fastPath{}
}

// takeFast is Take for the most common calls: a valid key of ordinary length
// under one limit that enforces, does not wait and is decided in this process.
// It returns false, and has done nothing, if the call is of another kind.
func (l *Limiter) takeFast(ctx context.Context, limit *Limit, d *Decision) (bool, error) {
	if l.fast.denials != nil && l.fast.denials.Empty() {
		return false, nil // nobody is over a limit
	}
	p := l.planOf(limit)
	if p == nil || !p.takes(limit) || ctx.Err() != nil {
		return false, nil
	}
	var array [fastKey]byte
	var c terms.Charge // set in place, since a copy waits for what was just written
	c.Terms, c.Key, c.Cost = p.terms, p.key(&array, &limit.key), limit.cost
	arrived := instant()
	if m := l.fast.denials; m != nil && !m.Denies(c.Key, &c, arrived, denials.Renewed) {
		return false, nil
	}
	if l.cap != nil {
		return l.cap.takeFast(ctx, l, limit, p, &c, arrived, d)
	}
	return l.decideFast(ctx, limit, p, &c, arrived, d)
}

// decideFast decides a charge in memory, unless it is denied already. It
// returns false, and has done nothing, if that cannot be.
func (l *Limiter) decideFast(ctx context.Context, limit *Limit, p *plan, c *terms.Charge, arrived time.Duration, d *Decision) (bool, error) {
	if memory := l.fast.memory; memory != nil {
		page, receipt, ok := memory.states.Take(memory.time(arrived), c)
		if !ok {
			return false, nil
		}
		d.Source, d.charged[0], d.marks[0], d.page = SourceStore, c.At, c.Mark, page
		if page != nil {
			d.receipt = uint32(receipt) | limit.mark(p.nameHash)&^receipts.Mask
		}
		if c.Algorithm == terms.Permits && c.At != 0 {
			l.permits.hold(p.rule, c.Key, p.max, c.Cost, c.At, false)
		}
	}
	if c.Recalled {
		d.Source = SourceRecalled
	}
	d.Allowed, d.Rule, d.Limit, d.Remaining, d.ResetAfter = c.Allowed, p.name, p.capacity, c.Remaining, c.ResetAfter
	if l.events.decides() {
		l.decidedFast(ctx, p, c, arrived, d.Source)
	}
	if c.Allowed {
		return true, nil
	}
	d.RetryAfter, d.Blocked = c.RetryAfter, c.Blocked
	if l.events.keys {
		l.keyDenied(ctx, p.rule, c.Key)
	}
	return true, l.events.log.deny(p.rule, c.Cost, d, arrived)
}

// decidedFast reports the decision about a planned charge.
func (l *Limiter) decidedFast(ctx context.Context, p *plan, c *terms.Charge, arrived time.Duration, source Source) {
	charges := [1]Charge{p.charge(c)}
	l.events.decided(ctx, charges[:], arrived, source, nil)
}
