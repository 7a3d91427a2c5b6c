package crossing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
)

// needless holds a denial against what can have been in its way at most.
func (o *oracle) needless(a *asked) {
	if !errors.Is(a.err, runtime.ErrLimited) || a.d.Source != runtime.SourceStore || len(o.jumps) > 0 || len(during(o.faults, 0, a.end)) > 0 {
		return
	}
	if a.d.Blocked && o.blockedBefore(a) {
		return
	}
	i := slices.IndexFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Name == a.d.Rule })
	if i < 0 || a.uses[i].Cost == 0 {
		return
	}
	u, rule := a.uses[i], o.program.Rules[a.uses[i].Rule]
	if o.adapts(a) {
		return
	}
	all := o.terms(u, a.at, a.at)
	if len(all) != 1 || rule.Lease > 0 || rule.Wait > 0 && rule.Algorithm == runtime.LeakyBucket || u.Cost > capacity(rule, all[0].max) {
		return
	}
	for _, t := range o.terms(u, 0, a.at) {
		if t.window != all[0].window || rule.Algorithm != runtime.Concurrency && rule.Algorithm != runtime.SlidingLog && t.max != all[0].max {
			return // what was counted by other terms counts longer, or drains otherwise
		}
	}
	for _, c := range o.asked {
		for j, v := range c.uses {
			if rule.Debt == runtime.DebtCarry && v.Rule == u.Rule && v.Key == u.Key && c.settled.tried && c.settled.cost[j] > v.Cost {
				return // it is owed for as long as it takes
			}
			this, other := &asked{uses: []use{u}}, &asked{uses: []use{v}}
			own := o.meet(this, other) && !o.sameTerms(this, other)
			if own && rule.Algorithm != runtime.Concurrency && rule.Algorithm != runtime.SlidingLog {
				return // likewise
			}
		}
	}
	if used := o.used(a, u, rule, all[0]); used+float64(u.Cost) <= float64(capacity(rule, all[0].max)) {
		o.wrong("nobody is denied who has room", "#%d at %v: %v (%s) has %.6g of %d used", a.number, a.at, u, ruleText(rule), used, capacity(rule, all[0].max))
	}
}

// used returns how much of a limit may be used at most when a call is denied.
func (o *oracle) used(a *asked, u use, rule *runtime.Rule, now terms) (level float64) {
	window := time.Duration(now.window) * time.Microsecond
	switch {
	case rule.Algorithm == runtime.SlidingCounter && rule.Buckets == runtime.AdaptiveBuckets():
		window += window/16 + time.Microsecond
	case rule.Algorithm == runtime.SlidingCounter:
		window += window/7 + time.Microsecond
	}
	bucket := rule.Algorithm == runtime.TokenBucket || rule.Algorithm == runtime.LeakyBucket
	last, floor := time.Duration(0), a.at
	if !o.exact {
		floor = a.start // it may have been decided then
	}
	for _, c := range o.asked {
		for j, v := range c.uses {
			if c == a || !o.meet(&asked{uses: []use{u}}, &asked{uses: []use{v}}) || !c.maybeCharged(j) || c.start > a.at {
				continue
			}
			at, cost := min(c.at, a.at), float64(c.most(j, a.start-o.lateness()))
			if s := c.settled; s.tried && s.cost[j] > v.Cost || errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded) {
				at = a.at // it may count as of now
			}
			switch {
			case rule.Algorithm == runtime.Concurrency:
				level += cost
			case bucket:
				if s := c.settled; s.tried && s.end > c.at {
					cost = max(cost, float64(v.Cost)) // what drained of it is not given back
				}
				rate := float64(now.max) / float64(now.window)
				level = max(0, level-rate*float64(max(0, at-last).Microseconds())) + cost
				last = max(last, at)
			case rule.Period != runtime.NoPeriod && !o.edge(rule, o.clock(at)).After(o.clock(floor-o.lateness())):
				// of a period that was over
			case at > floor-window-o.lateness() || rule.Period != runtime.NoPeriod:
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

// lateness is how long it takes at most until something is seen.
func (o *oracle) lateness() time.Duration {
	if o.exact {
		return time.Nanosecond // what is settled at the same moment may be later
	}
	return 5 * time.Millisecond
}
