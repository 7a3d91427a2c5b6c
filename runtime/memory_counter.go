package runtime

import "math"

// A memoryCounter is a [SlidingCounter] in memory, over buckets of any kind:
// layered ones decide as equal ones of the fine width do. See
// sliding_counter.lua.
type memoryCounter struct {
	buckets []memoryCount // ends ascend
	from    int64         // where the newest bucket starts
	last    int64         // the time of the newest event
	end     int64         // when the newest charge leaves the window it was made in

	at, start, stop int64 // found by look: the charge's time and its bucket
	gone            int   // how many buckets have left the window by then
}

type memoryCount struct{ stop, count int64 }

func (m *memoryCounter) of(r *Rule) bool { return r.Algorithm == SlidingCounter }

func (m *memoryCounter) newest() memoryCount {
	if len(m.buckets) == 0 {
		return memoryCount{}
	}
	return m.buckets[len(m.buckets)-1]
}

func (m *memoryCounter) until() int64 { return m.end }

func (m *memoryCounter) keep(until int64) { m.end = until }

func (m *memoryCounter) look(clock int64, c *Charge) (room, retry, reset int64) {
	window, newest := c.Rule.Window.Microseconds(), m.newest()
	m.at = max(clock, m.last)
	edge, used := m.at-window, int64(0)
	m.gone = 0
	for _, b := range m.buckets {
		if b.stop-1 > edge {
			used += b.count
		} else {
			m.gone++
		}
	}
	m.start, m.stop = m.from, newest.stop
	if newest.stop <= m.at {
		width := m.width(c)
		m.start = m.at - m.at%width
		m.stop = m.start + width
	}
	if used > 0 {
		reset = newest.stop - 1 + window - clock
	}
	room = c.Max - used
	if c.Cost > room {
		free := room
		for _, b := range m.buckets[m.gone:] {
			if free += b.count; free >= c.Cost {
				retry = b.stop - 1 + window - clock
				break
			}
		}
	}
	return room, retry, reset
}

// width returns the width of a new bucket.
func (m *memoryCounter) width(c *Charge) int64 {
	if w := c.Rule.Buckets.width(c.Rule.Window); w > 0 {
		return w
	}
	window := float64(c.Rule.Window.Microseconds())
	width := window / 64
	if newest := m.newest(); m.gone < len(m.buckets) {
		width = float64(newest.stop - m.from)
		if newest.count*8 >= c.Max {
			width /= 2
		} else if newest.count*32 < c.Max {
			width *= 2
		}
	}
	width = min(max(width, window/1024), window/16)
	return max(1, int64(math.Floor(width)))
}

func (m *memoryCounter) charge(clock int64, c *Charge) (at, reset, delay int64) {
	if m.newest().stop == m.stop {
		m.buckets[len(m.buckets)-1].count += c.Cost
	} else {
		m.buckets = append(m.buckets, memoryCount{stop: m.stop, count: c.Cost})
	}
	m.from, m.last = m.start, m.at
	m.buckets = append(m.buckets[:0], m.buckets[m.gone:]...)
	m.end = m.stop - 1 + c.Rule.Window.Microseconds()
	return m.stop - 1, m.end - clock, 0
}

func (m *memoryCounter) refund(_ int64, c *Charge) {
	for i := range m.buckets {
		if b := &m.buckets[i]; b.stop-1 == c.At {
			b.count = max(0, b.count-c.Cost)
		}
	}
}
