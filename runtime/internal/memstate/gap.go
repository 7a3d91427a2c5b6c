package memstate

import (
	"math"
	"slices"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// The gaps of a queue are where calls have left it before their turn, and others stand behind
// them, see bucket.lua. A gap is a pair: where it ends, and how many events it has.
const (
	gapSize   = 2
	maxGaps   = 64
	firstPair = 4 // in the list of a bucket, behind the window and max that all are of
)

// fitting returns how many events fit between two times: with an event's room for rounding, but at
// most a microsecond's.
func (d drain) fitting(from, to int64) int64 {
	return int64(math.Floor(float64(float64(to-from)*d.max)/d.window + min(1, d.max/d.window)))
}

// span returns how long so many events take, rounded down.
func (d drain) span(events int64) int64 {
	return int64(math.Floor(float64(float64(events)*d.window) / d.max))
}

// lookForGaps fills in what is left of the gaps at the time of a view, and the first one that a
// charge fits in.
func (b *bucket) lookForGaps(c *terms.Charge, v *view) {
	if len(b.list) < firstPair || v.level == 0 || b.list[2] != c.Window || b.list[3] != c.Max {
		return
	}
	d := drainOf(&c.Terms)
	for pair := range slices.Chunk(b.list[firstPair:], gapSize) {
		stop := pair[0]
		if stop <= v.time {
			continue
		}
		events := min(pair[1], d.fitting(v.time, stop))
		if events <= 0 {
			continue
		}
		v.gaps = append(v.gaps, stop, events)
		v.room += events
		if v.early == 0 && c.Cost > 0 && events >= c.Cost {
			v.gap, v.early = len(v.gaps)-gapSize, max(v.time, stop-d.span(events))
		}
	}
}

// takeGap has a charge take the gap that it fits in, and returns where its turn ends.
func (b *bucket) takeGap(c *terms.Charge, v *view) (turnEnd int64) {
	d, stop := drainOf(&c.Terms), v.gaps[v.gap]
	left := min(v.gaps[v.gap+1], d.fitting(v.early, stop)) - c.Cost
	v.gaps[v.gap+1] = left
	if left <= 0 {
		v.gaps = slices.Delete(v.gaps, v.gap, v.gap+gapSize)
	}
	return min(stop, v.early+int64(math.Ceil(float64(float64(c.Cost)*d.window)/d.max)))
}

// addGap makes a gap of the turn of a charge that is given back, and reports whether it could.
func (b *bucket) addGap(c *terms.Charge, v *view) bool {
	d, made := drainOf(&c.Terms), c.At
	if v.level == 0 || c.Mark < v.bound || made > v.end || made <= v.time {
		return false
	}
	events := min(c.Cost, d.fitting(v.time, made))
	if events <= 0 {
		return false
	}
	begin, i := made-d.span(events), 0
	for i < len(v.gaps) && v.gaps[i] <= made {
		i += gapSize
	}
	joinsBefore, joinsAfter := false, false
	if i > 0 {
		before := v.gaps[i-gapSize]
		if before > begin+1 {
			return false
		}
		joinsBefore = begin-before <= 1
	}
	if i < len(v.gaps) {
		after := v.gaps[i] - d.span(v.gaps[i+1])
		if made > after+1 {
			return false
		}
		joinsAfter = after-made <= 1
	}
	switch {
	case joinsAfter:
		v.gaps[i+1] += events
		if joinsBefore {
			v.gaps[i+1] += v.gaps[i-1]
			v.gaps = slices.Delete(v.gaps, i-gapSize, i)
		}
	case joinsBefore:
		v.gaps[i-gapSize], v.gaps[i-1] = made, v.gaps[i-1]+events
	case len(v.gaps) < maxGaps*gapSize:
		v.gaps = slices.Insert(v.gaps, i, made, events)
	default:
		return false
	}
	return true
}

// absorbGaps returns the level of a line that ends where no gap does.
func absorbGaps(t *terms.Terms, level float64, v *view) float64 {
	d := drainOf(t)
	for n := len(v.gaps); n > 0; n = len(v.gaps) {
		end := float64(v.time) + float64(level*d.window)/float64(d.max*levelUnit)
		if float64(float64((end-float64(v.gaps[n-gapSize]))*2)*d.max) > d.window {
			break
		}
		level = max(0, level-float64(float64(v.gaps[n-1])*levelUnit))
		v.gaps = v.gaps[:n-gapSize]
	}
	return level
}
