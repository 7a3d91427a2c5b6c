package crossing

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// used returns how much of a limit may be used at most when a call is refused, and a time later of
// that.
func (o *oracle) used(a *asked, u use, r *runtime.Rule, l limited, later time.Duration) (level float64) {
	base := l.window + r.Lease
	window := base + l.back
	if r.Algorithm == runtime.SlidingCounter && r.Buckets == rule.AdaptiveBuckets() {
		window += base/16 + time.Microsecond
	} else if r.Algorithm == runtime.SlidingCounter {
		window += base/7 + time.Microsecond
	}
	bucket := drains(r)
	last, floor, lately := time.Duration(0), a.from(o.history)+later, 0.0
	carries := r.Debt == rule.DebtCarry && r.Algorithm == runtime.FixedWindow
	if carries {
		window += l.window // what is owed is used in the next one
	} else if r.Algorithm == runtime.FixedWindow && r.Reserve == 0 && len(a.uses) == 1 && a.d.Source == rule.SourceStore && !a.d.Blocked && later == 0 {
		floor += a.d.RetryAfter // when the window ends, that has not begun before what counts in it
	}
	shown := o.clock(a.from(o.history) - o.lateness()) // at the least: the clock may step back while the call waits
	if then := o.clock(a.at); then.Before(shown) {
		shown = then
	}
	ends := func(at time.Duration) time.Time { // the period in which something counts at the latest
		end := o.edge(r, o.latest(at))
		if carries {
			end = o.edge(r, end)
		}
		return end
	}
	for _, c := range o.asked {
		for j, v := range c.uses {
			if c.number == a.number || v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) || !c.maybeCharged(j) && !o.parted(c, a) && o.places(c, j, a.at) == 0 || c.start > a.at || o.gone(c, j, a) {
				continue
			}
			if l.local && (c.process != a.process || c.reported[j].yes && c.reported[j].source != rule.SourceLocal) {
				continue // another count has it
			}
			at, cost := min(c.at, a.at), float64(o.counts(c, j, a))
			s := c.settled
			switch {
			case s.tried && s.cost[j] > v.Cost, c.left(), o.lateCharge(c, a):
				at = a.at // it may count as of now
			case o.lapsed(charge{c, j}, a.at): // it is renewed, or charged anew when it is settled, perhaps in the next period
				at = a.at
				if s.tried {
					at = min(a.at, max(c.at, s.over))
				}
			}
			if r.Period != rule.NoPeriod || r.Algorithm == runtime.FixedWindow && at > a.from(o.history)-window-o.lateness() {
				lately += cost
			}
			switch {
			case r.Algorithm == runtime.Concurrency:
				level += cost
			case bucket:
				if s.tried && (s.end > c.at || l.wait >= 0) {
					cost = max(cost, float64(v.Cost)) // what drained of it is not given back, nor what others stand behind
				}
				cost += float64(max(0, o.places(c, j, a.at)-1) * v.Cost)
				level = max(0, level-l.rate*float64(max(0, at-last).Microseconds())) + cost
				last = max(last, at)
			case r.Period != rule.NoPeriod && !ends(at).After(shown.Add(later)):
				// of a period that was over
			case at > floor-window-o.lateness() || r.Period != rule.NoPeriod:
				level += cost
			}
		}
	}
	if bucket {
		level = max(0, level-l.rate*float64(max(0, floor-last).Microseconds())) + l.rate*float64(l.back.Microseconds())
		level += 1e-3
	}
	if r.Lease > 0 { // a process asks for three quarters of what it has lately used, also before a window began, and has three grants at most, one of them on its way
		level += max(level, lately) * 9 / 4
	}
	return level
}

// places returns how many places in a queue a call with other limits has had at most by a time, one after the other: when
// one of them has no room at its turn it takes a new place, which is as far away as what it costs needs, or is refused.
// Those behind it stay where they are.
func (o *oracle) places(c *asked, use int, by time.Duration) int64 {
	u := c.uses[use]
	r := o.program.Rules[u.Rule]
	if len(c.uses) == 1 || r.Wait == 0 || r.Algorithm != runtime.LeakyBucket || c.call.Exempt || u.Cost == 0 || c.at <= c.start {
		return 0
	}
	rate := 0.0
	for _, t := range o.terms(u, c.start, by) {
		rate = max(rate, float64(o.highest(r, t.max))/float64(t.window))
	}
	return 1 + int64(float64(max(0, min(by, c.at)-c.start).Microseconds())*rate/float64(u.Cost))
}

// lateCharge reports whether a call may have been charged, or settled, later than its caller was told: a fault
// has kept its store from answering.
func (o *oracle) lateCharge(c, a *asked) bool {
	s := c.settled
	return o.faulted(c.start-o.recovery(), c.end) || s.tried && o.faulted(s.start-o.recovery(), min(s.end, a.at)) || o.program.Hasty
}

// gone reports whether a charge was forgotten for sure before a call, since its key was reset after it. What it
// turned out to cost later counts anew. Of a reset by another process a refusal may be remembered that came before,
// and what a process has counted alone only its own resets forget.
func (o *oracle) gone(c *asked, use int, a *asked) bool {
	u := c.uses[use]
	return slices.ContainsFunc(o.resets, func(r *happening) bool {
		late := o.lateness()
		if r.process != a.process && a.d.Source == rule.SourceLocal {
			return false
		}
		if r.process != a.process && a.d.Source == rule.SourceRecalled {
			late += o.remembers()
		}
		return o.resetsUse(r, u, c.start, c.at) && c.over() < r.from && r.to < a.start-late
	})
}

// resetsUse reports whether a reset is for sure of the key by which a use was charged in a time: that of layered
// buckets names their width, so a reset by another window leaves it.
func (o *oracle) resetsUse(r *happening, u use, from, to time.Duration) bool {
	if !o.program.alike(r.rule, u.Rule) || r.key != u.Key {
		return false
	}
	all := append(o.terms(use{Rule: r.rule, Key: r.key}, r.from, r.to), o.terms(u, from, to)...)
	return !layered(o.program.Rules[u.Rule]) || !slices.ContainsFunc(all, func(t terms) bool { return t.window != all[0].window })
}

// counts returns how much of a charge may count at most for a later call: the process of the
// call itself knows at once what it has given back. Of what another has given back a refusal
// may be remembered that came before.
func (o *oracle) counts(c *asked, use int, a *asked) int64 {
	s, late := c.settled, o.lateness()
	if a.d.Source == rule.SourceRecalled {
		late += o.remembers()
	}
	seen := s.over <= a.start-late || c.process == a.process && s.turn < a.turn
	if s.tried && s.cost[use] >= 0 && seen && s.err == nil && !s.mistake && !o.lateCharge(c, a) {
		return s.cost[use]
	}
	return max(c.uses[use].Cost, c.settledAt(use))
}

// parted reports whether a call that was refused may have been charged in part for a moment.
func (o *oracle) parted(c, a *asked) bool {
	return (c.parts || o.parts && len(c.uses) > 1) && !c.call.Exempt && (c.end >= a.start-100*time.Millisecond || o.lateCharge(c, a))
}

// remembers is for how long a process may go by a refusal at most, and not know what others
// have given back: one more answer than it trusts it.
func (o *oracle) remembers() time.Duration {
	if o.still {
		return 0
	}
	if o.scope.far {
		return o.program.Trip.Trust + 2*o.answers()
	}
	return trust + 2*o.answers()
}

// answers is how long an answer takes at most.
func (o *oracle) answers() time.Duration {
	if o.still {
		return 0
	}
	if o.scope.far {
		return o.program.Trip.longest()
	}
	return patience / 2
}

// lateness is how long it takes at most until something is seen.
func (o *oracle) lateness() time.Duration {
	if o.still {
		return time.Nanosecond // what is settled at the same moment may be later
	}
	return 5*time.Millisecond + 2*o.program.Trip.longest()
}
