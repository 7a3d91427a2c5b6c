package callers

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// An Outcome is what was decided about a limit of a call.
type Outcome uint8

// The outcomes. Shadow had no room, and refuses nobody. Undecided was decided by a failure policy.
const (
	Admitted Outcome = iota
	Refused
	Shadow
	Undecided
	Outcomes
)

const (
	// exact is how many calls of an outcome are counted one by one, of which one of sampled counts from
	// then on, as so many. It is a power of two.
	exact   = 1_024
	sampled = 64
)

// Calls counts what is decided until somebody takes it, and finds the keys that the store is asked about
// most. It is safe for concurrent use. Most calls cost a load and a multiplication.
type Calls struct {
	decided [Outcomes]atomic.Int64
	keys    atomic.Pointer[Sketch]
}

// NewCalls returns calls of which none was counted.
func NewCalls() *Calls {
	c := new(Calls)
	c.keys.Store(NewSketch())
	return c
}

// Count counts a limit of a call that arrived at an instant, and returns for how many it stands: perhaps for
// none. Instants are as good as random numbers, since many calls differ by nanoseconds.
func (c *Calls) Count(o Outcome, arrived time.Duration) (n int64) {
	if c.decided[o].Load() < exact {
		c.decided[o].Add(1)
		return 1
	}
	if drawn(arrived) {
		c.decided[o].Add(sampled)
		return sampled
	}
	return 0
}

// drawn reports whether an instant is one of sampled.
func drawn(arrived time.Duration) bool {
	return uint64(arrived)*0x9e3779b97f4a7c15>>32%sampled == 0
}

// Ask counts that the store was asked about a key of a rule n times. It keeps no key that it is given.
func (c *Calls) Ask(rule string, key []byte, n int64) { c.keys.Load().Add(rule, key, -1, uint64(n)) }

// Take returns what was decided since the last time, about how often the store was asked, and about which n
// keys most. It begins anew.
func (c *Calls) Take(n int) (decided [Outcomes]int64, asked uint64, most []Caller) {
	for i := range c.decided {
		decided[i] = c.decided[i].Swap(0)
	}
	all := c.keys.Swap(NewSketch()).All()
	for _, k := range all {
		asked += k.Count
	}
	// Those that are equal are in no order, so that all processes together tell each of them.
	slices.SortStableFunc(all, func(a, b Caller) int { return cmp.Compare(b.Count-b.Over, a.Count-a.Over) })
	return decided, asked, all[:min(n, len(all))]
}
