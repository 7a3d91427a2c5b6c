package runtime

import (
	"context"
	"time"
)

// quickKey is the longest key in bytes that a quick call may have.
const quickKey = 128

// A quick is a part of a store that decides a charge without leaving the
// process, and without keeping the charge: so that is on the caller's stack,
// and a call that needs nothing else takes half the time.
type quick struct {
	memory  *MemoryStore // or nil
	denials *denials     // of a RedisStore, or nil
}

func quickOf(store Store) quick {
	switch s := store.(type) {
	case *MemoryStore:
		return quick{memory: s}
	case *RedisStore:
		return quick{denials: s.denials}
	}
	return quick{}
}

// takeQuick is Take for what most calls are: a valid key of ordinary length
// under one limit that enforces, does not wait and is decided in this process.
// It returns false, and has done nothing, if the call is of another kind.
func (l *Limiter) takeQuick(ctx context.Context, limit *Limit, d *Decision) (bool, error) {
	if l.quick.denials != nil && !l.quick.denials.table.used.Load() {
		return false, nil // nobody is over a limit
	}
	rule, most, on, err := l.effective(limit)
	if err != nil || !on || limit.cost == 0 || limit.key.rare != nil || rule.Wait > 0 || rule.Mode != Enforce ||
		len(l.namespace)+rule.prefixLen()+len(limit.key.bytes()) > quickKey || ctx.Err() != nil {
		return false, nil
	}
	var array [quickKey + 32]byte
	charges := [1]Charge{{Rule: rule, Max: most, Cost: limit.cost}}
	c := &charges[0]
	if c.unsatisfiable() {
		return false, nil
	}
	key := appendKey(array[:0], l.namespace, rule, &limit.key)
	came := instant()
	if d := l.quick.denials; d != nil && !d.denies(key, c, came, renewed) {
		return false, nil
	}
	if l.cap != nil {
		return l.cap.takeQuick(ctx, l, key, &charges, came, d)
	}
	return l.decideQuick(ctx, key, &charges, came, d)
}

// decideQuick decides a charge in memory, unless it is denied already. It
// returns false, and has done nothing, if that cannot be.
func (l *Limiter) decideQuick(ctx context.Context, key []byte, charges *[1]Charge, came time.Duration, d *Decision) (bool, error) {
	c := &charges[0]
	if memory := l.quick.memory; memory != nil {
		shard, hash := memory.shard(key)
		shard.mu.Lock()
		err := shard.decide(memory.time(came), hash, key, c, true, memory.cap)
		// An unlock waits for all that was written before, and whoever copies
		// the decision would have to wait again for what is written after.
		if err == nil {
			d.charged[0], d.Source = c.At, SourceStore
			d.of(c)
		}
		shard.mu.Unlock()
		if c.At != 0 {
			issueReceipt(d)
		}
		if err != nil {
			return false, nil
		}
	} else {
		d.of(c)
	}
	if l.events.decides() {
		l.events.decided(ctx, charges[:], came, d.Source, nil)
	}
	if c.Allowed {
		return true, nil
	}
	l.events.log.denied(c, d.Source, came)
	return true, newLimitedError(c)
}
