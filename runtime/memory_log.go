package runtime

// A memoryLog is a [SlidingLog] in memory: the times of its events in a ring,
// oldest first. See sliding_log_list.lua.
//
//   - list is the ring, whose length is a power of two or 0;
//   - count is how many events there are, and from where in the ring they begin;
//   - at is the newest member of a ZSET, see sliding_log_zset.lua.
type memoryLog memoryState

func (l *memoryLog) event(i int64) int64 {
	return l.list[int(l.from+i)&(len(l.list)-1)]
}

func (l *memoryLog) newest() int64 {
	if l.count == 0 {
		return 0
	}
	return l.event(l.count - 1)
}

func (l *memoryLog) look(clock int64, c *Charge, v *memoryView) {
	window, newest := c.Rule.Window.Microseconds(), l.newest()
	v.at = max(clock, newest)
	left := l.eventsUpTo(v.at - window)
	v.count = left
	inside := l.count - left
	v.room, v.retry, v.reset = c.Max-inside, 0, 0
	if inside > 0 {
		v.reset = newest + window - clock
	}
	if c.Cost > v.room {
		v.retry = l.event(left+c.Cost-v.room-1) + window - clock
	}
}

// eventsUpTo returns how many events are at or before the edge. They are few,
// or all, unless the key was idle for a while: so it looks at the ends first.
func (l *memoryLog) eventsUpTo(edge int64) int64 {
	if l.count == 0 || l.event(0) > edge {
		return 0
	}
	if l.newest() <= edge {
		return l.count
	}
	low, step := int64(0), int64(1) // the event at low has left
	for low+step < l.count && l.event(low+step) <= edge {
		low += step
		step *= 2
	}
	high := min(low+step, l.count-1) // the one at high has not
	for high-low > 1 {
		if middle := (low + high) / 2; l.event(middle) > edge {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (l *memoryLog) charge(clock int64, c *Charge, v *memoryView) (at, reset, delay int64) {
	at = v.at
	newest := l.newest()
	if slice := c.Rule.Resolution.Microseconds(); slice > 0 {
		at = max(at-at%slice, newest)
	}
	reset = at + c.Rule.Window.Microseconds() - clock
	slack, trims, left := slack(c.Rule), true, v.count
	if c.Rule.Storage == List {
		if v.count == l.count || newest < at-at%slack {
			l.kept = clock + reset + slack
		}
		left = min(left, c.Cost+10_000)
	} else {
		if v.count == l.count {
			l.at = 0
		}
		last := max(v.at, l.at+c.Cost)
		trims = l.at < last-last%slack
		if trims {
			l.kept = last + c.Rule.Window.Microseconds() + slack
		}
		// What has left stays for as long as in Redis: a raised window may
		// count it again.
		inside := l.count - v.count
		trims = trims || (inside+c.Cost)*2 > c.Max || inside+c.Cost > 64 && (clock+inside)%17 < c.Cost
		left = min(left, c.Cost+128)
		l.at = last
	}
	switch {
	case v.count == l.count:
		l.drop(l.count)
	case trims:
		l.drop(left)
	}
	l.grow(c.Cost)
	for range c.Cost {
		l.list[int(l.from+l.count)&(len(l.list)-1)] = at
		l.count++
	}
	return at, reset, 0
}

func (l *memoryLog) drop(n int64) {
	if l.count -= n; l.count == 0 {
		l.from = 0
	} else if n > 0 {
		l.from = (l.from + n) & int64(len(l.list)-1)
	}
}

// grow makes room for n more events.
func (l *memoryLog) grow(n int64) {
	if int(l.count+n) <= len(l.list) {
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
	l.list, l.from = ring, 0
}

func (l *memoryLog) refund(c *Charge) {
	if l.count == 0 {
		return
	}
	before, n := l.eventsUpTo(c.At-1), int64(0)
	for n < c.Cost && before+n < l.count && l.event(before+n) == c.At {
		n++
	}
	for i := before + n; n > 0 && i < l.count; i++ {
		l.list[int(l.from+i-n)&(len(l.list)-1)] = l.event(i)
	}
	if l.count -= n; n > 0 && before == l.count {
		l.at = l.newest() // or a little more, which Redis knows
	}
	if l.count == 0 {
		l.kept = 0
	}
}
