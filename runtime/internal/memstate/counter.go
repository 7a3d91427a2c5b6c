package memstate

import (
	"math"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A counter is a state that counts events in buckets: equal, layered or
// adaptive. Layered buckets decide as equal ones of the fine width do. See
// sliding_counter.lua.
//
//   - list holds, for each bucket, where it stops and what it counts; the stops
//     ascend;
//   - bound is where the newest bucket starts;
//   - time is the time of the newest event;
//   - count is the first microsecond that the buckets have counted;
//   - dropTime is when the newest charge leaves the window by which it was made.
type counter state

func (m *counter) look(clock int64, c *terms.Charge, v *view) {
	newest, _ := m.newest()
	v.time = max(clock, m.time)
	edge, used, gone := v.time-c.Window, int64(0), 0
	for i := 0; i < len(m.list); i += 2 {
		if m.list[i]-1 > edge {
			used += m.list[i+1]
		} else {
			gone += 2
		}
	}
	v.count = int64(gone) // of the list has left the window
	v.bound, v.end = m.bound, newest
	if newest <= v.time {
		width := m.width(&c.Terms, gone)
		v.bound = v.time - v.time%width
		v.end = v.bound + width
	}
	v.room, v.retry, v.reset = c.Max-used, 0, 0
	if used > 0 {
		v.reset = newest - 1 + c.Window - clock
	}
	if c.Cost > v.room && used > 0 {
		v.retry = m.leaveTime(gone, c.Cost-v.room) + c.Window - clock
	}
}

// leaveTime returns the last instant of the bucket with which, from the i-th element of the list
// on, so many leave.
func (m *counter) leaveTime(i int, n int64) int64 {
	for ; i < len(m.list)-2; i += 2 {
		n -= m.list[i+1]
		if n <= 0 {
			break
		}
	}
	return m.list[i] - 1
}

func (m *counter) charge(clock int64, c *terms.Charge, v *view) {
	gone := int(v.count)
	if gone == len(m.list) {
		m.count = v.time
	} else if gone > 0 {
		m.count = m.list[gone-2]
	}
	if stop, _ := m.newest(); stop == v.end {
		m.list[len(m.list)-1] += c.Cost
	} else {
		m.list = append(m.list, v.end, c.Cost)
	}
	if v.count > 0 {
		m.list = append(m.list[:0], m.list[v.count:]...)
	}
	if c.Cost == v.room {
		v.more = m.leaveTime(0, 1) + c.Window - clock
	}
	m.bound, m.time = v.bound, v.time
	m.dropTime = v.end - 1 + c.Window
	v.reset, v.delay = m.dropTime-clock, 0
}

func (m *counter) refund(c *terms.Charge) {
	for i := 0; i < len(m.list) && c.At >= m.count; i += 2 {
		if c.At < m.list[i] {
			m.list[i+1] = max(0, m.list[i+1]-c.Cost)
			return
		}
	}
}

// newest returns where the newest bucket stops and what it counts.
func (m *counter) newest() (stop, count int64) {
	if n := len(m.list); n > 0 {
		return m.list[n-2], m.list[n-1]
	}
	return 0, 0
}

// width returns the width of a new bucket. The first gone elements of the list
// have left the window.
func (m *counter) width(t *terms.Terms, gone int) int64 {
	if t.Param > 0 {
		return t.Param
	}
	window := float64(t.Window)
	width := window / 64
	if gone < len(m.list) {
		stop, count := m.newest()
		width = float64(stop - m.bound)
		if count*8 >= t.Max {
			width /= 2
		} else if count*32 < t.Max {
			width *= 2
		}
	}
	width = min(max(width, window/1024), window/16)
	return max(1, int64(math.Floor(width)))
}
