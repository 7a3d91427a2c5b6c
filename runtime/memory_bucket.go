package runtime

import "math"

// A memoryBucket is a [TokenBucket] or [LeakyBucket] in memory. See bucket.lua,
// whose floating point operations it repeats one by one, so that both always
// agree.
type memoryBucket struct {
	level float64
	since int64
	empty int64 // when the level is 0 again
	used  bool  // level and since mean something

	at int64 // found by look
}

func (b *memoryBucket) of(r *Rule) bool {
	return r.Algorithm == TokenBucket || r.Algorithm == LeakyBucket
}

func (b *memoryBucket) until() int64 { return b.empty }

// A drainage is how fast a bucket drains: max in a window.
type drainage struct{ max, window float64 }

func drainageOf(c *Charge) drainage {
	return drainage{float64(c.Max), float64(c.Rule.Window.Microseconds())}
}

// The conversions keep the compiler from fusing a product and a sum, which
// would round once where Lua rounds twice.

func (b *memoryBucket) levelAt(d drainage, at int64) float64 {
	level := min(b.level, float64(float64(maxDrain*d.max)/d.window))
	return max(0, level-float64(float64(float64(at-b.since)*d.max)/d.window))
}

func (d drainage) time(level float64) int64 {
	return int64(math.Ceil(float64(level*d.window) / d.max))
}

func (b *memoryBucket) fits(d drainage, c *Charge, at int64) bool {
	level := b.levelAt(d, at)
	return level+float64(c.Cost) <= float64(c.Rule.capacity(c.Max)) &&
		(!c.Rule.queues() || d.time(level) <= c.Wait.Microseconds())
}

func (b *memoryBucket) look(clock int64, c *Charge) (room, retry, reset int64) {
	if !b.used {
		b.level, b.since = 0, clock
	}
	d, capacity := drainageOf(c), float64(c.Rule.capacity(c.Max))
	b.at = max(clock, b.since)
	level := b.levelAt(d, b.at)
	room = int64(math.Floor(capacity - level))
	if level > 0 {
		reset = b.at + d.time(level) - clock
	}
	if b.fits(d, c, b.at) {
		return room, 0, reset
	}
	wait := d.time(max(0, level+float64(c.Cost)-capacity))
	if c.Rule.queues() {
		wait = max(wait, d.time(level)-c.Wait.Microseconds())
	}
	at := b.at + max(1, wait)
	for !b.fits(d, c, at) {
		at++
	}
	for at-1 > b.at && b.fits(d, c, at-1) {
		at--
	}
	return room, at - clock, reset
}

func (b *memoryBucket) charge(clock int64, c *Charge) (at, reset, delay int64) {
	d := drainageOf(c)
	level := b.levelAt(d, b.at)
	if c.Rule.queues() {
		delay = b.at + d.time(level) - clock
	}
	b.set(d, level+float64(c.Cost), b.at)
	return b.at, b.empty - clock, delay
}

func (b *memoryBucket) refund(clock int64, c *Charge) {
	if b.used {
		d, at := drainageOf(c), max(clock, b.since)
		b.set(d, max(0, b.levelAt(d, at)-float64(c.Cost)), at)
	}
}

func (b *memoryBucket) set(d drainage, level float64, at int64) {
	b.level, b.since, b.used = level, at, true
	b.empty = at + d.time(level)
}
