package memstate

import (
	"slices"
	"sort"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A permits is a state that keeps what calls hold while they run. See
// concurrency.lua.
//
//   - list is a pair for each permit, when it lapses and its number, in that order, behind
//     the places of processes that wait;
//   - time is the highest number so far;
//   - count is the highest number at the last reset;
//   - bound is a running mean of how long permits were held; 0: none has come back.
type permits state

// The values that the list has of a permit.
const (
	permitEnd = iota
	permitNumber
	permitSize // how many values it has
)

// maxHeld bounds the time that a permit counts as held in the mean.
const maxHeld = 1 << 44

func (p *permits) look(clock int64, c *terms.Charge, v *view) {
	v.count = p.countLapsed(clock)
	held := int64(len(p.list) / permitSize)
	if p.time > clock+c.Window {
		// Those beyond are from before the clock stepped back, and count when they are renewed.
		held = p.countLapsed(clock + 2*c.Window)
	}
	v.end = held
	live := held - v.count
	v.time, v.room, v.retry, v.reset = clock, c.Max-live, 0, 0
	if live > 0 {
		v.reset = p.list[(held-1)*permitSize+permitEnd] - clock
	}
	if c.Cost > v.room {
		v.retry = p.list[(held-1-(c.Max-c.Cost))*permitSize+permitEnd] - clock
		if mean := p.bound; mean > 0 {
			hint := float64(mean) * float64(c.Cost-v.room) / float64(live)
			v.retry = min(v.retry, max(1000, int64(hint)))
		}
	}
	v.before, v.others = 0, 0
	if c.Param != 0 && v.count > 0 && p.list[0] < 0 {
		p.queue(clock, c, v)
	}
}

// countLapsed returns how many permits will have lapsed at a time.
func (p *permits) countLapsed(at int64) int64 {
	return int64(sort.Search(len(p.list)/permitSize, func(i int) bool { return p.list[i*permitSize+permitEnd] > at }))
}

// newest returns when the last permit lapses, or 0.
func (p *permits) newest() int64 {
	if len(p.list) == 0 {
		return 0
	}
	return p.list[len(p.list)-permitSize+permitEnd]
}

func (p *permits) charge(clock int64, c *terms.Charge, v *view) {
	p.list = p.list[:v.end*permitSize]
	newest := p.newest()
	line := p.line()
	if gone := min(v.count-int64(line/permitSize), c.Cost+128); gone > 0 {
		p.list = slices.Delete(p.list, line, line+int(gone*permitSize))
	}
	if line > 0 && c.Param != 0 {
		p.advance(clock, c, v)
	}
	stop := clock + c.Window
	p.time = max(clock, p.time+c.Cost)
	for i := p.time - c.Cost + 1; i <= p.time; i++ {
		p.add(stop, i)
	}
	p.keep(newest, stop, c.Window)
	v.time, v.reset, v.delay = p.time, max(stop, newest)-clock, 0
}

// keep sees to it that the state is kept until a permit lapses, in a state whose
// permits lapsed up to newest before. See slack in prelude.lua.
func (p *permits) keep(newest, stop, window int64) {
	if slack := expirySlack(window); newest < stop-stop%slack {
		p.dropTime = stop + slack
	}
}

func (p *permits) add(stop, n int64) {
	i := len(p.list)
	p.list = append(p.list, stop, n)
	for ; i > 0 && (p.list[i-permitSize+permitEnd] > stop ||
		p.list[i-permitSize+permitEnd] == stop && p.list[i-permitSize+permitNumber] > n); i -= permitSize {
		copy(p.list[i:i+permitSize], p.list[i-permitSize:i])
	}
	p.list[i+permitEnd], p.list[i+permitNumber] = stop, n
}

// remove removes the permits of a charge and returns how many there were.
func (p *permits) remove(c *terms.Charge) (removed int64) {
	line := p.line()
	kept := p.list[:line]
	for i := line; i < len(p.list); i += permitSize {
		if n := p.list[i+permitNumber]; n > c.At-c.Cost && n <= c.At {
			removed++
		} else {
			kept = append(kept, p.list[i:i+permitSize]...)
		}
	}
	p.list = kept
	return removed
}

func (p *permits) refund(clock int64, c *terms.Charge) {
	if c.At == 0 { // no call of the process waits any more
		if mine := p.place(c); mine >= 0 {
			p.list = slices.Delete(p.list, mine, mine+placeSize)
		}
		return
	}
	if p.remove(c) == 0 {
		return
	}
	held := max(1, min(clock-c.At, maxHeld))
	if p.bound == 0 {
		p.bound = held
	} else {
		p.bound += (held - p.bound) >> 3 // rounded down, as in Redis
	}
}

// renew renews permits, or forgets all of them if the cost is 0. It sets At to 0 if
// they were forgotten before.
func (p *permits) renew(clock int64, c *terms.Charge) {
	if c.Cost == 0 {
		p.time = max(clock, p.time)
		p.count, p.bound, p.list = p.time, 0, p.list[:0]
		p.dropTime = clock + c.Window + expirySlack(c.Window)
		return
	}
	if c.At <= p.count {
		c.At = 0
		return
	}
	newest, stop := p.newest(), clock+c.Window
	p.remove(c)
	for i := c.At - c.Cost + 1; i <= c.At; i++ {
		p.add(stop, i)
	}
	p.time = max(p.time, c.At)
	p.keep(newest, stop, c.Window)
}
