package rateprom

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/ratetally"
)

// The buckets of a native histogram: 8 in each power of two, so each is 9 % wide.
// They reach from 0.95 µs, below which everything counts as 0, to 17 minutes.
const (
	nativeSchema  = 3
	nativeLowest  = -20 << nativeSchema // 2^-20 s
	nativeHighest = 10 << nativeSchema
)

// A cell is a range of durations that lies within one bucket of the classic
// histogram and within one of the native histogram, so that counting in both takes
// one addition.
type cell struct {
	upTo    time.Duration // inclusive
	native  int           // key of the bucket
	classic int           // index of the bucket
}

// cells are sorted, and cover all durations.
var cells = func() (all []cell) {
	var bounds []time.Duration
	for key := nativeLowest; key <= nativeHighest; key++ {
		bounds = append(bounds, time.Duration(math.Exp2(float64(key)/(1<<nativeSchema))*1e9))
	}
	for _, bound := range ratetally.DurationBounds {
		bounds = append(bounds, inTime(bound))
	}
	slices.Sort(bounds)
	for _, bound := range append(bounds, math.MaxInt64) {
		classic, _ := slices.BinarySearchFunc(ratetally.DurationBounds, bound, func(b float64, d time.Duration) int { return cmp.Compare(inTime(b), d) })
		native := int(math.Ceil(math.Log2((bound - 1).Seconds()) * (1 << nativeSchema)))
		all = append(all, cell{bound, min(max(native, nativeLowest), nativeHighest), classic})
	}
	return all
}()

func inTime(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// firstCells are the cells where the search for a duration begins, by its highest
// bits: their number, and the four after the first.
var firstCells = func() (first [64 << 4]uint8) {
	for i := range first {
		least := time.Duration(math.Ldexp(float64(16|i&15), i>>4-4))
		n, _ := slices.BinarySearchFunc(cells, least, func(c cell, d time.Duration) int { return cmp.Compare(c.upTo, d) })
		first[i] = uint8(min(n, len(cells)-1))
	}
	return first
}()

// cellOf returns the index of the cell of a duration.
func cellOf(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	length := bits.Len64(uint64(d)) - 1
	i := int(firstCells[length<<4|int(uint64(d)<<4>>length)&15])
	for d > cells[i].upTo {
		i++
	}
	return i
}

// durations count how long decisions took.
type durations struct {
	counts [256]atomic.Uint64 // by cell
	sum    atomic.Int64       // in nanoseconds
}

func (h *durations) add(d time.Duration) {
	h.counts[cellOf(d)&255].Add(1)
	h.sum.Add(int64(d))
}
