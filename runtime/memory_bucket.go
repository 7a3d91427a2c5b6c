package runtime

import "math"

// A memoryBucket is a [TokenBucket] or [LeakyBucket] in memory. See bucket.lua,
// whose floating point operations it repeats one by one, so that both always
// agree.
//
//   - count is its level in millionths of an event;
//   - at is when it was that;
//   - from is until when Redis keeps the key, unless heal has changed that.
type memoryBucket memoryState

// levelUnit is in how many parts a bucket's level divides an event.
const levelUnit = 1_000_000

// A drainage is how fast a bucket drains: max in a window.
type drainage struct{ max, window float64 }

func drainageOf(c *Charge) drainage {
	return drainage{float64(c.Max), float64(c.Rule.Window.Microseconds())}
}

// The conversions keep the compiler from fusing a product and a sum, which
// would round once where Lua rounds twice.

// drained returns how much has drained after a time.
func (d drainage) drained(time int64) float64 {
	return math.Floor(float64(float64(float64(time)*d.max)*levelUnit) / d.window)
}

// time returns how long a level takes to drain.
func (d drainage) time(level float64) int64 {
	return int64(math.Ceil(float64(level*d.window) / float64(d.max*levelUnit)))
}

// left returns what is left of a level. It is quicker than a max of floating
// point numbers, which thinks of those that are none.
func left(level, gone float64) float64 {
	if gone >= level {
		return 0
	}
	return level - gone
}

// stored returns the level as of at, or less if that takes too long to drain.
func (b *memoryBucket) stored(d drainage) float64 {
	level := float64(b.count)
	if float64(level*d.window) > float64(float64(maxDrain*d.max)*levelUnit) {
		return d.drained(maxDrain)
	}
	return level
}

func (b *memoryBucket) look(clock int64, c *Charge, v *memoryView) {
	since := b.at
	if b.kept == 0 {
		since = clock
	}
	d, capacity, cost := drainageOf(c), float64(c.Rule.capacity(c.Max)), float64(c.Cost)
	stored := b.stored(d)
	v.at = max(clock, since)
	level := func(at int64) float64 { return left(stored, d.drained(at-since)) }
	v.level, v.stop = level(v.at), since+d.time(stored)
	v.room = int64(math.Floor((float64(capacity*levelUnit) - v.level) / levelUnit))
	v.retry, v.reset = 0, 0
	if v.level > 0 {
		v.reset = v.stop - clock
	}
	most, wait := float64((capacity-cost)*levelUnit), c.Wait.Microseconds()
	queues := c.Rule.queues()
	if v.level <= most && (!queues || v.stop-v.at <= wait) {
		return
	}
	turn := v.at + 1
	if queues {
		turn = max(turn, v.stop-wait)
	}
	fits := max(turn, since+d.time(stored-most))
	for level(fits) > most {
		fits++
	}
	for fits > turn && level(fits-1) <= most {
		fits--
	}
	v.retry = fits - clock
}

func (b *memoryBucket) charge(clock int64, c *Charge, v *memoryView) (at, reset, delay int64) {
	if c.Rule.queues() {
		delay = max(v.stop, v.at) - clock
	}
	stop := b.set(c, v.level+float64(float64(c.Cost)*levelUnit), v.at)
	return v.at, stop - clock, delay
}

func (b *memoryBucket) refund(clock int64, c *Charge) {
	if b.kept != 0 {
		d, at := drainageOf(c), max(clock, b.at)
		level := left(b.stored(d), d.drained(at-b.at))
		b.set(c, left(level, float64(float64(c.Cost)*levelUnit)), at)
	}
}

// set sets the level and returns when it is 0.
func (b *memoryBucket) set(c *Charge, level float64, at int64) (stop int64) {
	stop = at + drainageOf(c).time(level)
	if spare := b.from - stop; spare < 0 || spare > slack(c.Rule) {
		b.from = stop + slack(c.Rule)
		b.kept = b.from
	}
	b.count, b.at = int64(level), at // a whole number below 2^63
	return stop
}
