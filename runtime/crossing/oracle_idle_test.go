package crossing

import (
	"math"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
)

// idle holds a call that waits for room of one limit against the moments at which there came some,
// since a call was settled, its key was reset or other overrides were in force: it goes on at once, unless
// a call that waits before it wants the room. Room that another process has made it may find a second
// later.
//
// It says nothing of permits and queues, for which see processTurns and turns; of leases and reservations, of which
// room comes and goes while nobody calls; after faults, holds and steps of the clock, when it is not known by when
// the store had room; and of a world in which time passes while something is decided.
func (o *oracle) idle(a *asked) {
	if !o.still || len(a.uses) != 1 || a.each || a.more || a.call.Exempt || a.call.Meter != nil || a.left() || a.at <= a.start ||
		len(o.jumps)+len(o.faults) > 0 || len(o.holds) > 0 || o.closed < a.at || o.adapts(a) {
		return
	}
	u, r := a.uses[0], o.program.Rules[a.uses[0].Rule]
	if r.Wait == 0 || r.Lease > 0 || r.Reserve > 0 || o.program.roams(r) || r.Algorithm == runtime.LeakyBucket || r.Algorithm == runtime.Concurrency {
		return
	}
	for _, c := range o.asked {
		if s := c.settled; s.tried && s.err == nil && o.givesBack(c, u) {
			o.goesOn(a, c.process, s.over, s.turn+1)
		}
	}
	for _, h := range o.resets {
		if o.resetsUse(h, u, h.to, h.to) {
			o.goesOn(a, h.process, h.to, 0)
		}
	}
	for i, h := range o.changes[1:] {
		if o.program.under(u, o.changes[i]) != o.program.under(u, h) {
			o.goesOn(a, a.process, h.to, 0)
		}
	}
}

// givesBack reports whether the settlement of a call makes room of a use: one at what was charged makes none.
func (o *oracle) givesBack(c *asked, u use) bool {
	return slices.ContainsFunc(indexes(c.uses), func(i int) bool {
		v := c.uses[i]
		return v.Key == u.Key && o.program.alike(v.Rule, u.Rule) && c.maybeCharged(i) && c.settled.cost[i] >= 0 && c.settled.cost[i] < v.Cost
	})
}

// goesOn wants a call that waits to go on if there is room when a process has made some, and knows of
// its own settlements of the same moment that came before a turn. Room that another process has made is to be
// there all the time until the call may know.
func (o *oracle) goesOn(a *asked, process int, made time.Duration, turn int64) {
	u, r := a.uses[0], o.program.Rules[a.uses[0].Rule]
	if made <= a.start {
		return
	}
	known := made
	if process != a.process {
		known, turn = made+time.Second, 0
	}
	if known >= a.at || o.before(a, known) {
		return
	}
	all := o.terms(u, made, a.at)
	now := all[0]
	if slices.ContainsFunc(all, func(t terms) bool { return t != now }) {
		return
	}
	l := limited{capacity: capacity(r, now.max), max: now.max, wait: -1, rate: math.Inf(1)}
	o.slowest(&l, u, r, known)
	most := 0.0
	for _, at := range []time.Duration{made, known} {
		then := *a
		then.start, then.at, then.turn, then.d = at, at, turn, runtime.Decision{} // what a was told then is not known
		most = max(most, o.used(&then, u, r, l, 0))
	}
	free := now.off || !now.mode.Refuses()
	if free || l.fits(u, most, 0) {
		o.wrong("who waits is woken when there is room", "#%d waits from %v to %v: at %v %.6g of %d are used of %v (%s)", a.number, a.start, a.at, known, most, l.capacity, u, document.Fields(r))
	}
}

// before reports whether a call of the same process that waits for a key of another one at a time may be
// before that in line. What those behind it and those of other processes come to be charged counts as used.
func (o *oracle) before(a *asked, at time.Duration) bool {
	return slices.ContainsFunc(o.asked, func(b *asked) bool {
		return b.process == a.process && b.number < a.number && b.start <= at && b.at >= at && o.waits(b) && o.meet(a, b)
	})
}
