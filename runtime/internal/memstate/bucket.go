package memstate

import (
	"math"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A bucket is a state that keeps a level which drains: that of a token bucket, a
// leaky bucket or a queue. It repeats the floating point operations of
// bucket.lua one by one, so that both always agree.
//
//   - count is the level in millionths of an event;
//   - time is the time of that level;
//   - bound is until when Redis keeps the key, unless heal has changed that;
//   - list is empty if the bucket was empty before the last charge; otherwise it holds
//     since when it was not, and the mark of a charge that is made at the time at; and then of a
//     queue with gaps what bucket.lua says.
type bucket state

// levelUnit is in how many parts a bucket's level divides an event.
const levelUnit = 1_000_000

// maxDebt is the highest level.
const maxDebt = 1 << 62

func (b *bucket) look(clock int64, c *terms.Charge, v *view) {
	since := b.time
	if b.dropTime == 0 {
		since = clock
	}
	d, capacity := drainOf(&c.Terms), float64(c.Param)
	stored := b.storedLevel(d)
	v.time = max(clock, since)
	level := func(at int64) float64 { return remainder(stored, d.drained(at-since)) }
	v.level, v.end = level(v.time), since+d.time(stored)
	v.bound, v.mark = b.drainTo(v.level, v.time)
	v.room = int64(math.Floor((float64(capacity*levelUnit) - v.level) / levelUnit))
	v.retry, v.reset, v.delay = 0, 0, 0
	if v.level > 0 {
		v.reset = v.end - clock
	}
	v.gaps, v.early = nil, 0
	highest, queues := float64((capacity-float64(c.Cost))*levelUnit), c.Algorithm == algorithm.Queue
	if queues {
		b.lookForGaps(c, v)
	}
	if v.early != 0 && v.early-v.time <= c.More {
		if v.early > v.time {
			v.delay = v.early - clock
		}
		return
	}
	if v.level <= highest && (!queues || v.end-v.time <= c.More) {
		if queues && c.Cost > 0 && v.end > v.time {
			v.delay = v.end - clock
		}
		return
	}
	turn := v.time + 1
	if queues {
		turn = max(turn, v.end-c.More)
	}
	fits := max(turn, since+d.time(stored-highest))
	for level(fits) > highest {
		fits++
	}
	for fits > turn && level(fits-1) <= highest {
		fits--
	}
	if v.early != 0 {
		fits = min(fits, v.early-c.More)
	}
	v.retry = fits - clock
}

func (b *bucket) charge(clock int64, c *terms.Charge, v *view) { b.chargeUntil(clock, c, v, 0) }

// chargeUntil is charge for a key that lives until a time at least.
func (b *bucket) chargeUntil(clock int64, c *terms.Charge, v *view, least int64) {
	level, turn, turnEnd := v.level+float64(float64(c.Cost)*levelUnit), max(v.end, v.time), int64(0)
	if v.early != 0 {
		level, turn, turnEnd = v.level, v.early, b.takeGap(c, v)
	}
	b.keepMark(c, v)
	stop := b.set(&c.Terms, level, v.time, least)
	v.reset, v.delay = stop-clock, 0
	if c.Algorithm == algorithm.Queue {
		v.delay = turn - clock
		if turnEnd == 0 {
			turnEnd = stop
		}
		v.time, v.mark = turnEnd, v.time
	}
}

func (b *bucket) refund(clock int64, c *terms.Charge) {
	if b.dropTime == 0 || (*state)(b).isAhead(clock, c.Window) {
		return
	}
	var v view
	b.look(clock, &terms.Charge{Terms: c.Terms}, &v)
	back := b.refundable(c, &v)
	closes := back == 0 && c.Algorithm == algorithm.Queue && b.addGap(c, &v)
	if back > 0 || closes {
		level := absorbGaps(&c.Terms, remainder(v.level, back), &v)
		b.keepMark(c, &v)
		b.set(&c.Terms, level, v.time, 0)
	}
}

// refundable returns how much of c.Cost is given back of a charge, in the unit of
// levels.
func (b *bucket) refundable(c *terms.Charge, v *view) float64 {
	back, whole := float64(float64(c.Cost)*levelUnit), float64(float64(c.Charged)*levelUnit)
	behind := v.end - c.At
	if v.level == 0 {
		return 0
	}
	if c.Algorithm == algorithm.Queue {
		// Not if somebody is behind it in line, or it is of before a reset, see bucket.lua.
		if c.Mark < v.bound || behind < 0 || float64(float64(behind*2)*float64(c.Max)) > float64(c.Window) {
			return 0
		}
	} else if c.At < v.bound || c.At > b.time || c.Mark > v.mark {
		return 0
	} else if c.At != b.time || whole != float64(b.count) { // others are in the bucket
		most := math.Ceil(float64(whole * shareLeft(c.Mark, v.mark)))
		if most < v.level && v.level < float64(b.count) {
			most--
		}
		return min(back, most)
	}
	return back
}

// storedLevel returns the level at the time at, or less if that takes too long to
// drain.
func (b *bucket) storedLevel(d drain) float64 {
	level := float64(b.count)
	if float64(level*d.window) > float64(float64(spec.MaxDrain*d.max)*levelUnit) {
		return d.drained(spec.MaxDrain)
	}
	return level
}

// set sets the level and returns when it will have drained. The key lives until a time at least.
func (b *bucket) set(t *terms.Terms, level float64, at, least int64) (stop int64) {
	d := drainOf(t)
	if level > float64(t.Param)*levelUnit { // a debt; what would take longer to drain is never owed
		level = min(level, maxDebt, d.drained(spec.MaxDrain))
	}
	stop = at + d.time(level)
	lives := max(stop, least)
	if spare, slack := b.bound-lives, expirySlack(t.Window); spare < 0 || spare > slack {
		b.bound = lives + slack
		b.dropTime = b.bound
	}
	b.count, b.time = int64(level), at // The level is a whole number below 2^63.
	return stop
}

// A drain is how fast a bucket drains: max in a window.
type drain struct{ max, window float64 }

func drainOf(t *terms.Terms) drain { return drain{float64(t.Max), float64(t.Window)} }

// The conversions below keep the compiler from fusing a product and a sum. A
// fused operation rounds once where Lua rounds twice.

// drained returns how much drains in a time.
func (d drain) drained(time int64) float64 {
	return math.Floor(float64(float64(float64(time)*d.max)*levelUnit) / d.window)
}

// time returns how long a level takes to drain.
func (d drain) time(level float64) int64 {
	return int64(math.Ceil(float64(level*d.window) / float64(d.max*levelUnit)))
}

// remainder returns the rest of a level. It is faster than a max of floating point
// numbers, which also handles NaN.
func remainder(level, gone float64) float64 {
	if gone >= level {
		return 0
	}
	return level - gone
}
