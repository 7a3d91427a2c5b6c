package runtime

import "context"

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
		len(l.namespace)+len(rule.Prefix)+len(limit.key.bytes()) > quickKey || ctx.Err() != nil {
		return false, nil
	}
	var array [quickKey + 32]byte
	charge := [1]Charge{{Rule: rule, Max: most, Cost: limit.cost}}
	c := &charge[0]
	if c.hopeless() {
		return false, nil
	}
	key := appendKey(array[:0], l.namespace, rule, &limit.key)
	came := instant()
	if memory := l.quick.memory; memory == nil {
		if !l.quick.denials.denies(key, c, came, renewed) {
			return false, nil
		}
	} else if err := memory.decideOne(memory.time(came), key, c, true); err != nil {
		return false, nil
	}
	d.Source = SourceStore
	return true, l.answer(charge[:], came, d)
}
