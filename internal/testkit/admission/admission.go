// Package admission judges calls of which is known when they began and ended, and not when each was
// admitted in between.
package admission

import (
	"cmp"
	"slices"
)

// A Call was admitted.
type Call struct{ Begin, End, Cost int64 }

// Fullest returns how much the calls cost that began and ended within the window of a length for
// which that is most, and how many windows there are that begin with a call and hold more than
// most.
func Fullest(calls []Call, length, most int64) (used int64, over int) {
	byBegin, byEnd := make([]*Call, len(calls)), make([]*Call, len(calls))
	for i := range calls {
		byBegin[i], byEnd[i] = &calls[i], &calls[i]
	}
	slices.SortFunc(byBegin, func(a, b *Call) int { return cmp.Compare(a.Begin, b.Begin) })
	slices.SortFunc(byEnd, func(a, b *Call) int { return cmp.Compare(a.End, b.End) })
	inside, next := int64(0), 0
	counted := make(map[*Call]bool)
	for _, first := range byBegin {
		for ; next < len(byEnd) && byEnd[next].End < first.Begin+length; next++ {
			if c := byEnd[next]; c.Begin >= first.Begin {
				inside += c.Cost
				counted[c] = true
			}
		}
		used = max(used, inside)
		if inside > most {
			over++
		}
		if counted[first] {
			inside -= first.Cost
			delete(counted, first)
		}
	}
	return used, over
}
