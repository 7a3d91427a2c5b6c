package runtime

import "math"

// A memoryCounter is a [SlidingCounter] in memory, over buckets of any kind:
// layered ones decide as equal ones of the fine width do. See
// sliding_counter.lua.
//
//   - list has where each bucket stops and what it counts; the stops ascend;
//   - from is where the newest bucket starts;
//   - at is the time of the newest event;
//   - kept is when the newest charge leaves the window it was made in.
type memoryCounter memoryState

// newest returns where the newest bucket stops and what it counts.
func (m *memoryCounter) newest() (stop, count int64) {
	if n := len(m.list); n > 0 {
		return m.list[n-2], m.list[n-1]
	}
	return 0, 0
}

func (m *memoryCounter) look(clock int64, c *Charge, v *memoryView) {
	window := c.Rule.Window.Microseconds()
	newest, _ := m.newest()
	v.at = max(clock, m.at)
	edge, used, gone := v.at-window, int64(0), 0
	for i := 0; i < len(m.list); i += 2 {
		if m.list[i]-1 > edge {
			used += m.list[i+1]
		} else {
			gone += 2
		}
	}
	v.count = int64(gone)
	v.from, v.stop = m.from, newest
	if newest <= v.at {
		width := m.width(c, gone)
		v.from = v.at - v.at%width
		v.stop = v.from + width
	}
	v.room, v.retry, v.reset = c.Max-used, 0, 0
	if used > 0 {
		v.reset = newest - 1 + window - clock
	}
	if c.Cost > v.room {
		free := v.room
		for i := gone; i < len(m.list); i += 2 {
			if free += m.list[i+1]; free >= c.Cost {
				v.retry = m.list[i] - 1 + window - clock
				break
			}
		}
	}
}

// width returns the width of a new bucket, when so much of the list has left the
// window.
func (m *memoryCounter) width(c *Charge, gone int) int64 {
	if w := c.Rule.Buckets.width(c.Rule.Window); w > 0 {
		return w
	}
	window := float64(c.Rule.Window.Microseconds())
	width := window / 64
	if gone < len(m.list) {
		stop, count := m.newest()
		width = float64(stop - m.from)
		if count*8 >= c.Max {
			width /= 2
		} else if count*32 < c.Max {
			width *= 2
		}
	}
	width = min(max(width, window/1024), window/16)
	return max(1, int64(math.Floor(width)))
}

func (m *memoryCounter) charge(clock int64, c *Charge, v *memoryView) (at, reset, delay int64) {
	if stop, _ := m.newest(); stop == v.stop {
		m.list[len(m.list)-1] += c.Cost
	} else {
		m.list = append(m.list, v.stop, c.Cost)
	}
	if v.count > 0 {
		m.list = append(m.list[:0], m.list[v.count:]...)
	}
	m.from, m.at = v.from, v.at
	m.kept = v.stop - 1 + c.Rule.Window.Microseconds()
	return v.stop - 1, m.kept - clock, 0
}

func (m *memoryCounter) refund(c *Charge) {
	for i := 0; i < len(m.list); i += 2 {
		if m.list[i]-1 == c.At {
			m.list[i+1] = max(0, m.list[i+1]-c.Cost)
		}
	}
}
