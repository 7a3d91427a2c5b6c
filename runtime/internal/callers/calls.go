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

// The first exact calls of an outcome since the last time are counted one by one. Of later calls one
// in Sampled is counted, for so many.
const (
	exact   = 1_024
	Sampled = 64
)

// Calls are what was decided since it was taken, and the keys that Redis was asked about, one of
// Sampled.
type Calls struct {
	Refused *Counter // nil: no keys are told
	n       [Outcomes]atomic.Int64
	keys    atomic.Pointer[Sketch]
}

// NewCalls returns calls without any.
func NewCalls() *Calls {
	c := new(Calls)
	c.keys.Store(NewSketch())
	return c
}

// Count counts a limit of a call, and returns for how many it stands: perhaps for none.
func (c *Calls) Count(o Outcome, drawn bool) (n int64) {
	if c.n[o].Load() < exact {
		n = 1
	} else if drawn {
		n = Sampled
	} else {
		return 0
	}
	c.n[o].Add(n)
	return n
}

// Draw counts a key of a rule that Redis was asked about.
func (c *Calls) Draw(rule string, key []byte) { c.keys.Load().Add(rule, key, -1, Sampled) }

// Take returns how many calls there were since the last time, and the keys that Redis was asked about,
// those of the most calls first.
func (c *Calls) Take() (n [Outcomes]int64, keys []Caller) {
	for i := range n {
		n[i] = c.n[i].Swap(0)
	}
	keys = c.keys.Swap(NewSketch()).All()
	// Those that are equal are in no order, so that all processes together tell each of them.
	slices.SortStableFunc(keys, func(a, b Caller) int { return cmp.Compare(b.Count-b.Margin, a.Count-a.Margin) })
	return n, keys
}
