package crossing

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
)

// idle holds a call that waits for room of one limit against the moments at which its process has
// made some: it goes on at once, unless a call that waits before it wants the room. Room of
// another process it may find a second later.
//
// It says nothing where needless does not, of permits, which are asked for every 50 ms, and of a
// world in which time passes while something is decided.
func (o *oracle) idle(a *asked) {
	if !o.still || len(a.uses) != 1 || a.each || a.more || a.call.Exempt || a.call.Meter != nil || a.left() || a.at <= a.start ||
		len(o.jumps)+len(o.faults) > 0 || len(o.changes) > 1 || len(o.holds) > 0 || o.closed < a.at || o.adapts(a) {
		return
	}
	u, r := a.uses[0], o.program.Rules[a.uses[0].Rule]
	all := o.terms(u, a.start, a.at)
	if len(all) != 1 || !all[0].mode.Refuses() || r.Wait == 0 || r.Lease > 0 || r.Reserve > 0 || o.program.roams(r) || u.Cost > capacity(r, all[0].max) ||
		r.Algorithm == runtime.LeakyBucket || r.Algorithm == runtime.Concurrency {
		return
	}
	for _, c := range o.asked {
		made, late := c.settled.over, time.Duration(0)
		if c.process != a.process {
			late = time.Second
		}
		if !c.settled.tried || c.settled.err != nil || made <= a.start || made+late >= a.at || o.before(a, made+late) {
			continue
		}
		then := *a
		then.start, then.at, then.turn = made+late, made+late, 0
		if late == 0 {
			then.turn = c.settled.turn + 1 // by then it knows of what was settled before, at the same moment too
		}
		if used := o.used(&then, u, r, all[0]); used+float64(u.Cost) <= float64(capacity(r, all[0].max)) && !o.otherTerms(u, r, all[0], then.at) {
			o.wrong("who waits is woken when there is room", "#%d waits from %v to %v: at %v %.6g of %d are used of %v (%s)", a.number, a.start, a.at, then.at, used, capacity(r, all[0].max), u, ruleText(r))
			return
		}
	}
}

// before reports whether a call that waits for a key of another one at a time may be before it in the
// line of its process.
func (o *oracle) before(a *asked, at time.Duration) bool {
	return slices.ContainsFunc(o.asked, func(b *asked) bool {
		return b != a && b.start <= at && b.at >= at && o.waits(b) && o.meet(a, b)
	})
}
