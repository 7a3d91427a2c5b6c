package callers

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// An Outcome is what was decided about a limit of a call.
type Outcome uint8

// The outcomes, and Asked, of which Redis was asked about.
const (
	Admitted Outcome = iota
	Over
	Shadow
	Undecided
	Asked
	Outcomes
)

// Calls are what was decided since it was taken, and the keys that Redis was asked about.
type Calls struct {
	Refused *Counter // nil: no keys are told
	Decided [Outcomes]atomic.Int64
	Keys    atomic.Pointer[Sketch]
}

func NewCalls() *Calls {
	c := new(Calls)
	c.Keys.Store(NewSketch())
	return c
}

// Take returns how many calls there were since the last time, and the keys that Redis was asked about,
// those of the most calls first.
func (c *Calls) Take() (n [Outcomes]int64, keys []Caller) {
	for i := range n {
		n[i] = c.Decided[i].Swap(0)
	}
	keys = c.Keys.Swap(NewSketch()).All()
	// Those that are equal are in no order, so that all processes together tell each of them.
	slices.SortStableFunc(keys, func(a, b Caller) int { return cmp.Compare(b.Count-b.Margin, a.Count-a.Margin) })
	return n, keys
}
