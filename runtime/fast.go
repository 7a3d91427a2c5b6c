package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// fastKey is the longest key in bytes that a call on the fast path may have.
const fastKey = 128

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
	rule, max, on, err := l.effective(limit)
	if err != nil || !on || limit.cost == 0 || limit.key.rare != nil || rule.Wait > 0 || rule.Mode != Enforce ||
		len(l.namespace)+rule.prefixLen()+len(limit.key.bytes()) > fastKey || ctx.Err() != nil {
		return false, nil
	}
	var array [fastKey + 32]byte
	charges := [1]Charge{{Rule: rule, Max: max, Cost: limit.cost}}
	c := &charges[0]
	if c.unsatisfiable() {
		return false, nil
	}
	key := appendKey(array[:0], l.namespace, rule, &limit.key)
	arrived := instant()
	if m := l.fast.denials; m != nil {
		plain := terms.Charge{Cost: c.Cost}
		rule.setTerms(&plain.Terms, max, 0)
		if !m.Denies(key, &plain, arrived, denials.Renewed) {
			return false, nil
		}
		c.Result = Result(plain.Result)
	}
	if l.cap != nil {
		return l.cap.takeFast(ctx, l, key, &charges, arrived, d)
	}
	return l.decideFast(ctx, key, &charges, arrived, d)
}

// decideFast decides a charge in memory, unless it is denied already. It
// returns false, and has done nothing, if that cannot be.
func (l *Limiter) decideFast(ctx context.Context, key []byte, charges *[1]Charge, arrived time.Duration, d *Decision) (bool, error) {
	c := &charges[0]
	if memory := l.fast.memory; memory != nil {
		if memory.decideOne(memory.time(arrived), key, c, true) != nil {
			return false, nil
		}
		if d.charged[0], d.Source = c.At, SourceStore; c.At != 0 {
			issueReceipt(d)
			if c.Rule.Algorithm == Concurrency {
				l.permits.hold(c.Rule, key, c.Max, c.Cost, c.At, false)
			}
		}
	}
	d.of(c)
	if l.events.decides() {
		l.events.decided(ctx, charges[:], arrived, d.Source, nil)
	}
	if c.Allowed {
		return true, nil
	}
	if l.events.keys {
		l.keyDenied(ctx, c.Rule, key)
	}
	l.events.log.denied(c, d.Source, arrived)
	return true, newLimitedError(c)
}
