package ledger

import (
	"time"

	"github.com/rategen/rategen/internal/spec"
)

const (
	// AdvanceTime is how long units that were taken in advance may wait to be used.
	AdvanceTime = time.Second
	// portionSpan is how long a portion is to last, at the rate at which the one before was used.
	portionSpan = AdvanceTime * 3 / 4
	// growth is how many times as large as that one a portion is at most.
	growth = 8
	// portionShare is which part of what a limit has left a portion is at most, so that few calls are
	// refused for what others hold.
	portionShare = 8
)

// An Advance is what a call has taken in advance of one limit. The zero Advance is nothing.
type Advance struct {
	unusedUnits int64         // units that were taken and not used
	size        int64         // of the newest portion
	room        int64         // what the limit had left after it
	portionTime time.Duration // the instant of the newest portion
}

// Drop empties the advance, and returns what was left.
func (a *Advance) Drop() int64 {
	left := a.unusedUnits
	a.unusedUnits = 0
	return left
}

// Due returns the instant from which on units that are left have waited for too long.
func (a *Advance) Due() time.Duration { return a.portionTime + AdvanceTime }

// Portion returns how many units to take at an instant, for a use of which need units are
// lacking, where a limit takes most at once: as many as are used in a while, if the limit
// has many left. A free limit refuses nobody: once it has too few left, they are not what
// bounds a portion.
func (a *Advance) Portion(need, most int64, free bool, now time.Duration) int64 {
	times := min(growth, float64(portionSpan)/float64(now-a.portionTime))
	size := int64(min(float64(a.size)*times, spec.MaxAmount))
	room := a.room / portionShare
	if free && a.room < need {
		room = most
	}
	return max(need, min(size, room, most))
}

// Add adds a portion that was taken at an instant, and left the limit with so much.
func (a *Advance) Add(portion, room int64, now time.Duration) {
	*a = Advance{unusedUnits: a.unusedUnits + portion, size: portion, room: room, portionTime: now}
}

// Refuse notes that a portion was refused: the next one is what is needed.
func (a *Advance) Refuse() { a.size = 0 }
