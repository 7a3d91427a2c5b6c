package adaptive

import "math"

// A curve says which factor belongs to a reading: above 1 below idle, 1 from
// there to busy, and below 1 above. It is highest up to rest, and lowest from
// full on.
type curve struct{ rest, idle, busy, full float64 }

// share returns the curve of a reading that is a part, 1 being all there is.
func share(idle, busy float64) curve { return curve{idle / 5, idle, busy, busy + (1-busy)*0.75} }

// multiple returns the curve of a reading that has no bound.
func multiple(idle, busy float64) curve { return curve{idle / 5, idle, busy, 2 * busy} }

// factor returns what belongs to a reading in a band.
func (c curve) factor(reading, low, high float64) float64 {
	if reading < c.idle {
		return 1 + (high-1)*min(1, (c.idle-reading)/(c.idle-c.rest))
	}
	if reading > c.busy {
		return 1 - (1-low)*min(1, (reading-c.busy)/(c.full-c.busy))
	}
	return 1
}

// fade is how far below 1 a signal is when idle ones have no say any more.
const fade = 0.1

// faded returns what is left of a factor above 1 beside one below 1.
func faded(raise, lower float64) float64 {
	return 1 + (raise-1)*max(0, 1-(1-lower)/fade)
}

const (
	// steps is how many steps the factor takes from 0 to 1.
	steps = 20
	// play is by how many of them it may differ from what the readings say.
	play = 1.5
)

// settle returns the factor after a factor before, when the readings say next.
// It moves no further than it must to stay within play, so that readings which
// tremble do not move it to and fro, but comes all the way to 1 and to the ends
// of the band.
func settle(before, next, low, high float64) float64 {
	next = clamp(low, next, high)
	at := next * steps
	if next == 1 || next == low || next == high {
		return next
	}
	if at > before*steps+play {
		return clamp(low, math.Ceil(at-play)/steps, high)
	}
	if at < before*steps-play {
		return clamp(low, math.Floor(at+play)/steps, high)
	}
	return before
}
