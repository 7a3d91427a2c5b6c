package runtime

// A memoryLog is a [SlidingLog] in memory: the times of its events in a ring,
// oldest first. See sliding_log_list.lua.
type memoryLog struct {
	ring  []int64 // its length is a power of two, or 0
	head  int32
	left  int32 // found by look: how many events have left the window
	count int

	at   int64 // the time of the look
	end  int64 // until when Redis keeps the key
	last int64 // the newest member of a ZSET, see sliding_log_zset.lua
}

func (l *memoryLog) of(r *Rule) bool { return r.Algorithm == SlidingLog }

func (l *memoryLog) event(i int) int64 { return l.ring[(int(l.head)+i)&(len(l.ring)-1)] }

func (l *memoryLog) newest() int64 {
	if l.count == 0 {
		return 0
	}
	return l.event(l.count - 1)
}

func (l *memoryLog) until() int64 {
	if l.count == 0 {
		return 0
	}
	return l.end
}

func (l *memoryLog) keep(until int64) { l.end = until }

func (l *memoryLog) look(clock int64, c *Charge) (room, retry, reset int64) {
	window, newest := c.Rule.Window.Microseconds(), l.newest()
	l.at = max(clock, newest)
	left := l.eventsUpTo(l.at - window)
	l.left = int32(left)
	inside := int64(l.count - left)
	if inside > 0 {
		reset = newest + window - clock
	}
	room = c.Max - inside
	if c.Cost > room {
		leaver := left + int(c.Cost-room) - 1
		retry = l.event(leaver) + window - clock
	}
	return room, retry, reset
}

// eventsUpTo returns how many events are at or before the edge. They are few,
// or all, unless the key was idle for a while: so it looks at the ends first.
func (l *memoryLog) eventsUpTo(edge int64) int {
	if l.count == 0 || l.event(0) > edge {
		return 0
	}
	if l.newest() <= edge {
		return l.count
	}
	low, step := 0, 1 // the event at low has left
	for low+step < l.count && l.event(low+step) <= edge {
		low += step
		step *= 2
	}
	high := min(low+step, l.count-1) // the one at high has not
	for high-low > 1 {
		if middle := int(uint(low+high) / 2); l.event(middle) > edge {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (l *memoryLog) charge(clock int64, c *Charge) (at, reset, delay int64) {
	at = l.at
	newest := l.newest()
	if slice := c.Rule.Resolution.Microseconds(); slice > 0 {
		at = max(at-at%slice, newest)
	}
	left := int(l.left)
	if left == l.count {
		l.last = 0
	}
	l.drop(left)
	l.grow(int(c.Cost))
	for range c.Cost {
		l.ring[(int(l.head)+l.count)&(len(l.ring)-1)] = at
		l.count++
	}
	reset = at + c.Rule.Window.Microseconds() - clock
	slack := slack(c.Rule)
	if c.Rule.Storage == List {
		if newest < at-at%slack {
			l.end = clock + reset + slack
		}
		return at, reset, 0
	}
	last := max(l.at, l.last+c.Cost)
	if l.last < last-last%slack {
		l.end = last + c.Rule.Window.Microseconds() + slack
	}
	l.last = last
	return at, reset, 0
}

func (l *memoryLog) drop(n int) {
	l.count -= n
	if l.count == 0 {
		l.head = 0
		return
	}
	l.head = int32((int(l.head) + n) & (len(l.ring) - 1))
}

// grow makes room for n more events.
func (l *memoryLog) grow(n int) {
	if l.count+n <= len(l.ring) {
		return
	}
	size := max(4, len(l.ring))
	for size < l.count+n {
		size *= 2
	}
	ring := make([]int64, size)
	for i := range l.count {
		ring[i] = l.event(i)
	}
	l.ring, l.head = ring, 0
}

func (l *memoryLog) refund(_ int64, c *Charge) {
	before, n := l.eventsUpTo(c.At-1), 0
	for n < int(c.Cost) && before+n < l.count && l.event(before+n) == c.At {
		n++
	}
	for i := before + n; n > 0 && i < l.count; i++ {
		l.ring[(int(l.head)+i-n)&(len(l.ring)-1)] = l.event(i)
	}
	if l.count -= n; n > 0 && before == l.count {
		l.last = l.newest() // or a little more, which Redis knows
	}
}
