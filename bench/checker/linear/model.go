// Package linear asks a second judge about the decisions of a limit: porcupine, which
// looks for an order of all operations in which each happened at one moment between its
// call and its return, and in which one limit after the other answers as it did.
//
// The window is so long that nothing leaves it, so the limit is a count of what its
// charges hold. Porcupine finds an order for small histories only: some clients, one key.
package linear

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"
)

// An op is what a client asked for.
type op struct {
	kind kind
	id   int   // of a take, and of the take that is settled
	cost int64 // of a take, or what a settlement leaves
	max  int64
}

type kind uint8

const (
	take kind = iota
	peek
	settle
	reset
)

// An answer is what a client was told.
type answer struct {
	unknown bool // nothing: it may be done at any time, or never
	allowed bool
	left    int64
}

// charges are what counts of each take, by its id. A state is never changed.
type charges map[int]int64

func (c charges) used() (sum int64) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// with returns the charges with another cost of one of them.
func (c charges) with(id int, cost int64) charges {
	other := maps.Clone(c)
	if other[id] = cost; cost == 0 {
		delete(other, id)
	}
	return other
}

// model is one limit.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{charges{}} },
	Step: func(state, input, output any) []any {
		c, in, out := state.(charges), input.(op), output.(answer)
		after := []any{}
		if out.unknown {
			after = append(after, c) // it was not done
		}
		left := in.max - c.used()
		switch in.kind {
		case take:
			allowed := in.cost <= left
			told := answer{allowed: allowed, left: left}
			if allowed {
				told.left -= in.cost
			}
			if out.unknown || out == told {
				if allowed {
					c = c.with(in.id, in.cost)
				}
				after = append(after, c)
			}
		case peek:
			if out.unknown || out == (answer{allowed: in.cost <= left, left: left}) {
				after = append(after, c)
			}
		case settle:
			if _, ok := c[in.id]; ok { // else it was forgotten
				c = c.with(in.id, in.cost)
			}
			after = append(after, c)
		case reset:
			after = append(after, charges{})
		}
		return after
	},
	Equal:             func(a, b any) bool { return maps.Equal(a.(charges), b.(charges)) },
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	DescribeState: func(state any) string {
		c := state.(charges)
		var text string
		for _, id := range slices.Sorted(maps.Keys(c)) {
			text += fmt.Sprintf(" %d: %d", id, c[id])
		}
		return text
	},
}
