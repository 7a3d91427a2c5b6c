package crossing

import (
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// needless holds a refusal against what can have been in its way at most. A limit without room
// explains it, or a block or hold of the key; nothing else does.
//
// It says nothing after the clock was set back, since what was counted before may count for longer, nor after any
// step of it of a reservation, which is renewed by its process's clock and so perhaps in the next period; after a
// fault that leaves it open what was charged; of a bucket whose max follows the load, which drains by what nobody is
// told, or whose lease lowers its burst; of a queue, where turns count and not calls. Of a lease it takes most units
// to be held: a process asks for three quarters of what it has lately used, and has three grants at most, one of
// them on its way.
func (o *oracle) needless(a *asked) {
	if !errors.Is(a.err, runtime.ErrLimited) || o.setBack(a.end) || o.reserves(a) && len(during(o.jumps, 0, a.end)) > 0 || o.obscured(a) {
		return
	}
	if a.d.Source != rule.SourceStore && a.d.Source != rule.SourceRecalled {
		return
	}
	if a.d.Blocked && o.blockedBefore(a) {
		return
	}
	i := slices.IndexFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Name == a.d.Rule })
	if i < 0 {
		o.wrong("a refusal names a limit of its call", "#%d: %q", a.number, a.d.Rule)
		return
	}
	u, r := a.uses[i], o.program.Rules[a.uses[i].Rule]
	all := o.terms(u, a.from(o.history), a.at)
	if o.adapts(a) && len(all) == 1 {
		if t := a.reported[i]; t.yes && !drains(r) {
			all[0].max = t.max
		} else {
			return
		}
	}
	if len(all) != 1 || o.program.roams(r) || r.Lease > 0 && drains(r) || r.Wait > 0 && r.Algorithm == runtime.LeakyBucket || u.Cost > capacity(r, all[0].max) || o.otherTerms(u, r, all[0], a.at) {
		return
	}
	used, kept := o.used(a, u, r, all[0]), o.kept(a, u, r, all[0])
	if r.Lease > 0 {
		used += used * 9 / 4
	}
	if used+float64(u.Cost) <= float64(capacity(r, all[0].max))-kept {
		o.wrong("nobody is refused who has room", "#%d at %v: %v (%s) has %.6g of %d used, %.6g kept for others", a.number, a.at, u, ruleText(r), used, capacity(r, all[0].max), kept)
	}
}

// drains reports whether a rule has a bucket.
func drains(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}

// setBack reports whether the store's clock was set back by a time.
func (o *oracle) setBack(by time.Duration) bool {
	return slices.ContainsFunc(during(o.jumps, 0, by), func(j *happening) bool { return j.by < 0 })
}

// obscured reports whether a fault may have left it open what was charged before a call.
func (o *oracle) obscured(a *asked) bool {
	return slices.ContainsFunc(during(o.faults, 0, a.end), func(f *happening) bool { return f.fault != slow && f.fault != flushed })
}

// otherTerms reports whether anything may have been counted on a key by a window, or in a
// bucket by a max, that is not the one of now: it counts longer, or drains otherwise.
func (o *oracle) otherTerms(u use, rule *runtime.Rule, now terms, at time.Duration) bool {
	bucket := drains(rule)
	for _, c := range o.asked {
		for _, v := range c.uses {
			if c.start > at || v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) {
				continue
			}
			if c.settled.tried && len(during(o.changes[1:], c.start, at)) > 0 && bucket {
				return true // it is settled by its terms of then
			}
			for _, t := range o.terms(v, c.start, c.at) {
				if t.window != now.window || bucket && t.max != now.max {
					return true
				}
			}
		}
	}
	return false
}

// used returns how much of a limit may be used at most when a call is refused.
func (o *oracle) used(a *asked, u use, r *runtime.Rule, now terms) (level float64) {
	window := time.Duration(now.window)*time.Microsecond + r.Lease
	if r.Algorithm == runtime.SlidingCounter && r.Buckets == rule.AdaptiveBuckets() {
		window += window/16 + time.Microsecond
	} else if r.Algorithm == runtime.SlidingCounter {
		window += window/7 + time.Microsecond
	}
	bucket := drains(r)
	last, floor := time.Duration(0), a.from(o.history)
	carries := r.Debt == rule.DebtCarry && r.Algorithm == runtime.FixedWindow
	if carries {
		window *= 2 // what is owed is used in the next one
	} else if r.Algorithm == runtime.FixedWindow && r.Reserve == 0 && len(a.uses) == 1 && a.d.Source == rule.SourceStore && !a.d.Blocked {
		floor += a.d.RetryAfter // when the window ends, that has not begun before what counts in it
	}
	ends := func(at time.Duration) time.Time { // the period in which something counts at the latest
		end := o.edge(r, o.clock(at))
		if carries {
			end = o.edge(r, end)
		}
		return end
	}
	for _, c := range o.asked {
		for j, v := range c.uses {
			if c == a || v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) || !c.maybeCharged(j) && !o.parted(c, a) || c.start > a.at || o.gone(c, j, a) {
				continue
			}
			at, cost := min(c.at, a.at), float64(o.counts(c, j, a))
			if s := c.settled; s.tried && s.cost[j] > v.Cost || c.left() {
				at = a.at // it may count as of now
			}
			switch {
			case r.Algorithm == runtime.Concurrency:
				level += cost
			case bucket:
				if s := c.settled; s.tried && s.end > c.at {
					cost = max(cost, float64(v.Cost)) // what drained of it is not given back
				}
				rate := float64(now.max) / float64(now.window)
				level = max(0, level-rate*float64(max(0, at-last).Microseconds())) + cost
				last = max(last, at)
			case r.Period != rule.NoPeriod && !ends(at).After(o.clock(a.from(o.history)-o.lateness())):
				// of a period that was over
			case at > floor-window-o.lateness() || r.Period != rule.NoPeriod:
				level += cost
			}
		}
	}
	if bucket {
		level = max(0, level-float64(now.max)/float64(now.window)*float64(max(0, floor-last).Microseconds()))
		level += 1e-3
	}
	return level
}

// gone reports whether a charge was forgotten for sure before a call, since its key was reset after it. What it
// turned out to cost later counts anew. Of a reset by another process a refusal may be remembered that came before.
func (o *oracle) gone(c *asked, use int, a *asked) bool {
	u := c.uses[use]
	return slices.ContainsFunc(o.resets, func(r *happening) bool {
		late := o.lateness()
		if r.process != a.process && a.d.Source == rule.SourceRecalled {
			late += o.remembers()
		}
		return o.program.alike(r.rule, u.Rule) && r.key == u.Key && c.over() < r.from && r.to < a.start-late
	})
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
	if s.tried && s.cost[use] >= 0 && seen && s.err == nil && !s.mistake {
		return s.cost[use]
	}
	return max(c.uses[use].Cost, c.settledAt(use))
}

// parted reports whether a call that was refused may have been charged in part for a moment.
func (o *oracle) parted(c, a *asked) bool {
	return (c.parts || o.parts && len(c.uses) > 1) && !c.call.Exempt && c.end >= a.start-100*time.Millisecond
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
