// Package callers counts which callers are refused most, in bounded memory, and at little cost
// for those who are refused.
//
// It is handed the names of rules and the texts of their keys. It keeps no more than
// [Sketch] says, whatever callers send. It never decides a call.
package callers

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// A Caller is how often calls with a key of a rule were counted.
type Caller struct {
	Rule, Key string
	// Max is that of the last of the calls, if calls bring their own, or else below 0: [Shadowed], if the
	// limit was in shadow mode and refused nobody.
	Max int64
	// Count is too high by Margin at most.
	Count, Margin uint64
}

// Shadowed is the Max of a caller whom a limit in shadow mode would have refused.
const Shadowed = -2

const (
	// each is how many refusals of a key are counted one by one.
	each = 128
	// oneOf says how many refusals stand for one that is counted, from then on.
	oneOf = 32
	// slots is how many keys are told apart by whether they have had so many.
	slots    = 1 << slotBits
	slotBits = 10
)

// A Counter counts refusals until somebody takes them. The first [each] of a key are counted one
// by one, and after these one of [oneOf], as so many: a caller who is refused from memory waits for
// no lock. It is safe for concurrent use.
type Counter struct {
	sketch atomic.Pointer[Sketch]
	seen   [slots]atomic.Uint32 // refusals that were counted, of the keys in a slot
}

func NewCounter() *Counter {
	c := new(Counter)
	c.sketch.Store(NewSketch())
	return c
}

// Add counts a refusal of a call with a key of a rule, and with a max of its own or one below 0. It keeps
// no key that it is given.
func (c *Counter) Add(rule string, key []byte, most int64) {
	n := uint64(1)
	seen := &c.seen[slot(key)]
	if seen.Load() < each {
		seen.Add(1)
	} else if rand.Uint32()%oneOf == 0 {
		n = oneOf
	} else {
		return
	}
	c.sketch.Load().Add(rule, key, most, n)
}

// slot returns the slot of a key. Keys of one slot are told apart all the same, but some of their
// refusals are counted one of [oneOf] too early.
func slot(key []byte) uint64 {
	n := uint64(len(key))
	if len(key) >= 8 {
		n ^= binary.LittleEndian.Uint64(key) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(key[len(key)-8:]), 17)
	} else {
		for _, b := range key {
			n = n<<8 | uint64(b)
		}
	}
	return n * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// Take returns the refusals since the last time, and begins anew.
func (c *Counter) Take() []Caller {
	all := c.sketch.Swap(NewSketch()).All()
	for i := range c.seen {
		c.seen[i].Store(0)
	}
	return all
}

// Return counts refusals again that were taken in vain.
func (c *Counter) Return(all []Caller) {
	s := c.sketch.Load()
	for _, r := range all {
		if sure := r.Count - r.Margin; sure > 0 {
			s.Add(r.Rule, []byte(r.Key), r.Max, sure)
		}
	}
}

// Most returns the n refusals that matter most, and how many refusals there are beside them. The
// keys that each rule refuses most go before the next ones of any, so that an attack on one rule
// hides no caller of another; those that limits in shadow mode would have refused are behind all of these, and
// no others. What may be too high of a count is among the others.
func Most(all []Caller, n int) (most []Caller, others uint64) {
	slices.SortFunc(all, Compare)
	rank := map[string]int{} // of the next key of each rule
	type ranked struct {
		Caller
		rank int
	}
	list := make([]ranked, len(all))
	for i, r := range all {
		of, first := r.Rule, 0
		if r.Max == Shadowed { // behind who was refused
			of, first = "\x00"+r.Rule, n
		}
		list[i] = ranked{r, first + rank[of]}
		rank[of]++
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for i, r := range list {
		sure := r.Count - r.Margin
		told := i < n && sure > 0
		if told {
			most = append(most, Caller{Rule: r.Rule, Key: r.Key, Max: r.Max, Count: sure})
		}
		if r.Max == Shadowed {
			continue
		}
		if told {
			others += r.Margin
		} else {
			others += r.Count
		}
	}
	return most, others
}

// Compare orders refusals: who is refused most, for certain, is first.
func Compare(a, b Caller) int {
	return cmp.Or(cmp.Compare(b.Count-b.Margin, a.Count-a.Margin), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
}
