package runtime

import "math"

// A memoryBucket is a [TokenBucket] or [LeakyBucket] in memory. See bucket.lua,
// whose floating point operations it repeats one by one, so that both always
// agree.
type memoryBucket struct {
	level   float64 // in millionths of an event, a whole number
	since   int64
	expires int64 // until when Redis keeps the key, as far as the state says
	kept    int64 // until when it does
	used    bool  // the state means something

	at    int64   // found by look, as what follows
	found float64 // the level at that time
	empty int64   // when it is 0
}

func (b *memoryBucket) of(r *Rule) bool {
	return r.Algorithm == TokenBucket || r.Algorithm == LeakyBucket
}

func (b *memoryBucket) until() int64 { return b.kept }

func (b *memoryBucket) keep(until int64) { b.kept = until }

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

// stored returns the level as of since, or less if that takes too long to drain.
func (b *memoryBucket) stored(d drainage) float64 {
	if float64(b.level*d.window) > float64(float64(maxDrain*d.max)*levelUnit) {
		return d.drained(maxDrain)
	}
	return b.level
}

func (b *memoryBucket) look(clock int64, c *Charge) (room, retry, reset int64) {
	if !b.used {
		b.level, b.since = 0, clock
	}
	d, capacity, cost := drainageOf(c), float64(c.Rule.capacity(c.Max)), float64(c.Cost)
	stored := b.stored(d)
	b.at = max(clock, b.since)
	level := func(at int64) float64 { return max(0, stored-d.drained(at-b.since)) }
	b.found, b.empty = level(b.at), b.since+d.time(stored)
	room = int64(math.Floor((float64(capacity*levelUnit) - b.found) / levelUnit))
	if b.found > 0 {
		reset = b.empty - clock
	}
	most, wait := float64((capacity-cost)*levelUnit), c.Wait.Microseconds()
	queues := c.Rule.queues()
	if b.found <= most && (!queues || b.empty-b.at <= wait) {
		return room, 0, reset
	}
	turn := b.at + 1
	if queues {
		turn = max(turn, b.empty-wait)
	}
	fits := max(turn, b.since+d.time(stored-most))
	for level(fits) > most {
		fits++
	}
	for fits > turn && level(fits-1) <= most {
		fits--
	}
	return room, fits - clock, reset
}

func (b *memoryBucket) charge(clock int64, c *Charge) (at, reset, delay int64) {
	if c.Rule.queues() {
		delay = max(b.empty, b.at) - clock
	}
	stop := b.set(c, b.found+float64(float64(c.Cost)*levelUnit), b.at)
	return b.at, stop - clock, delay
}

func (b *memoryBucket) refund(clock int64, c *Charge) {
	if b.used {
		d, at := drainageOf(c), max(clock, b.since)
		level := max(0, b.stored(d)-d.drained(at-b.since))
		b.set(c, max(0, level-float64(float64(c.Cost)*levelUnit)), at)
	}
}

// set sets the level and returns when it is 0.
func (b *memoryBucket) set(c *Charge, level float64, at int64) (stop int64) {
	stop = at + drainageOf(c).time(level)
	if spare := b.expires - stop; !b.used || spare < 0 || spare > slack(c.Rule) {
		b.expires = stop + slack(c.Rule)
		b.kept = b.expires
	}
	b.level, b.since, b.used = level, at, true
	return stop
}
