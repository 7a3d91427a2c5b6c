package memstate

import (
	"math"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// What a bucket holds drains evenly, see bucket.lua. A share is what is left of a charge
// that was made when the bucket was last empty. It is rest / 2^(40 + halvings), and its
// mark grows while it falls.
const (
	wholeRest   = 1<<40 - 1 // of a share of which nothing has drained
	maxHalvings = 8192
)

func markOf(halvings int64, rest float64) int64 { return (halvings+1)<<40 - 1 - int64(rest) }

// markParts returns what markOf was given.
func markParts(mark int64) (halvings int64, rest float64) {
	return mark >> 40, float64(wholeRest - mark&wholeRest)
}

// shareLeft returns which share is left of a charge with a mark when the mark is now
// another one. It is rounded down.
func shareLeft(made, now int64) float64 {
	madeHalvings, madeRest := markParts(made)
	halvings, rest := markParts(now)
	return float64(rest/madeRest) * math.Ldexp(1, int(madeHalvings-halvings))
}

// drainTo returns since when the bucket is not empty, and the mark, once its level has
// drained to another one at a time.
func (b *bucket) drainTo(level float64, at int64) (begun, mark int64) {
	if level == 0 {
		return at, 0
	}
	begun = b.time
	if len(b.list) > 0 {
		begun, mark = b.list[0], b.list[1]
	}
	if held := float64(b.count); level < held {
		halvings, rest := markParts(mark)
		rest *= float64(level / held)
		for ; rest < 1<<39; rest *= 2 {
			halvings++
		}
		rest = math.Floor(rest) - 1
		if halvings >= maxHalvings { // of what was charged before next to nothing is left
			return at, 0
		}
		mark = markOf(halvings, rest)
	}
	return begun, mark
}

// keepMark keeps what drainTo returned, and the gaps of a view of a charge.
func (b *bucket) keepMark(c *terms.Charge, v *view) {
	b.list = b.list[:0]
	if v.level > 0 {
		b.list = append(b.list, v.bound, v.mark)
		if len(v.gaps) > 0 {
			b.list = append(append(b.list, c.Window, c.Max), v.gaps...)
		}
	}
}
