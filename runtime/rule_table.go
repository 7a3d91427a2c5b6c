package runtime

import (
	"sync"
	"sync/atomic"
)

// maxKnown is how many rules a limiter keeps values for. A program that makes new
// rules all the time does not fill its memory: rules beyond cost more per call,
// share their lines in the log and do not adapt.
const maxKnown = 10_000

// A ruleTable keeps a value for each rule, by its declaration.
type ruleTable[T any] struct {
	rules sync.Map // *Rule as declared -> *T
	known atomic.Int64
}

// find returns the value of a rule, or nil.
func (t *ruleTable[T]) find(declared *Rule) *T {
	found, _ := t.rules.Load(declared)
	kept, _ := found.(*T)
	return kept
}

// keep keeps a value for a rule that has none yet, unless there are too many
// rules, and reports whether it did.
func (t *ruleTable[T]) keep(declared *Rule, v *T) bool {
	if t.known.Load() >= maxKnown {
		return false
	}
	_, known := t.rules.LoadOrStore(declared, v)
	if !known {
		t.known.Add(1)
	}
	return !known
}

// all calls visit with every rule until that returns false.
func (t *ruleTable[T]) all(visit func(declared *Rule, v *T) bool) {
	t.rules.Range(func(key, value any) bool { return visit(key.(*Rule), value.(*T)) })
}
