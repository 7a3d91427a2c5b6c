package memstate

import (
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A log is a state that keeps the time of every event, in a ring, oldest first.
// See sliding_log_zset.lua and sliding_log_packed.lua.
//
//   - list is the ring; its length is a power of two or 0;
//   - count is the number of events;
//   - bound is the index of the first event in the ring;
//   - time is the newest member of the sorted set, if there is one in Redis.
type log state

func (l *log) event(i int64) int64 {
	return l.list[int(l.bound+i)&(len(l.list)-1)]
}

// newest returns the time of the last event, or 0.
func (l *log) newest() int64 {
	if l.count == 0 {
		return 0
	}
	return l.event(l.count - 1)
}

func (l *log) look(clock int64, c *terms.Charge, v *view) {
	newest := l.newest()
	v.time = max(clock, newest)
	v.count = l.eventsUpTo(v.time - c.Window) // have left the window
	inside := l.count - v.count
	v.room, v.retry, v.reset = c.Max-inside, 0, 0
	if inside > 0 {
		v.reset = newest + c.Window - clock
	}
	if c.Cost > v.room {
		v.retry = l.event(v.count+c.Cost-v.room-1) + c.Window - clock
	}
}

// eventsUpTo returns how many events are at or before the edge. It looks at the
// ends first and then searches from the oldest event on: few events, or all,
// have left the window unless the key was idle for a while.
func (l *log) eventsUpTo(edge int64) int64 {
	if l.count == 0 || l.event(0) > edge {
		return 0
	}
	if l.newest() <= edge {
		return l.count
	}
	low, step := int64(0), int64(1) // The event at low is not after the edge.
	for low+step < l.count && l.event(low+step) <= edge {
		low += step
		step *= 2
	}
	high := min(low+step, l.count-1) // The event at high is after it.
	for high-low > 1 {
		if middle := (low + high) / 2; l.event(middle) > edge {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (l *log) charge(clock int64, c *terms.Charge, v *view) {
	at, newest := v.time, l.newest()
	if slice := c.Param; slice > 0 && v.count < l.count {
		at = max(at-at%slice, newest)
	}
	if c.Cost == v.room {
		v.more = at + c.Window - clock
		if v.count < l.count {
			v.more = l.event(v.count) + c.Window - clock
		}
	}
	slack, trims, left := expirySlack(c.Window), true, v.count
	if c.Algorithm != algorithm.LogZSet {
		if v.count == l.count || newest < at-at%slack {
			l.dropTime = at + c.Window + slack
		}
		if left <= 4 && (c.Max <= 64 || l.count+c.Cost <= 32) {
			left = 0 // They stay in Redis, see sliding_log_packed.lua.
		}
	} else {
		if v.count == l.count {
			l.time = 0
		}
		last := max(v.time, l.time+c.Cost)
		trims = l.time < last-last%slack
		if trims {
			l.dropTime = last + c.Window + slack
		}
		// Events that have left the window stay as long as in Redis, since a
		// raised window may count them again.
		inside := l.count - v.count
		trims = trims || (inside+c.Cost)*2 > c.Max || inside+c.Cost > 64 && (clock+inside)%17 < c.Cost
		left = min(left, c.Cost+128)
		l.time = last
	}
	if v.count == l.count {
		l.drop(l.count)
	} else if trims {
		l.drop(left)
	}
	l.grow(c.Cost)
	for range c.Cost {
		l.list[int(l.bound+l.count)&(len(l.list)-1)] = at
		l.count++
	}
	v.time, v.reset, v.delay = at, at+c.Window-clock, 0
}

func (l *log) drop(n int64) {
	l.count -= n
	if l.count == 0 {
		l.bound = 0
	} else if n > 0 {
		l.bound = (l.bound + n) & int64(len(l.list)-1)
	}
}

func (l *log) grow(n int64) {
	if int(l.count+n) <= len(l.list) {
		return
	}
	if l.count == 0 && int(n) <= cap(l.list) {
		l.list = l.list[:cap(l.list)] // a ring that was cleared
		return
	}
	size := max(4, len(l.list))
	for size < int(l.count+n) {
		size *= 2
	}
	ring := make([]int64, size)
	for i := range l.count {
		ring[i] = l.event(i)
	}
	l.list, l.bound = ring, 0
}

func (l *log) refund(c *terms.Charge) {
	if l.count == 0 {
		return
	}
	before, n := l.eventsUpTo(c.At-1), int64(0)
	for n < c.Cost && before+n < l.count && l.event(before+n) == c.At {
		n++
	}
	for i := before + n; n > 0 && i < l.count; i++ {
		l.list[int(l.bound+i-n)&(len(l.list)-1)] = l.event(i)
	}
	l.count -= n
	if n > 0 && before == l.count {
		l.time = l.newest() // Redis may know a slightly later one.
	}
	if l.count == 0 {
		l.dropTime = 0
	}
}
