package crossing

import (
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// debts returns what settlements have charged beyond the reserved cost of a key, for
// sure and between two times.
func (o *oracle) debts(charges []charge, from, to time.Duration) (sum int64) {
	for _, c := range charges {
		s := c.settled
		if o.program.Rules[c.uses[c.use].Rule].Debt == rule.DebtForgive {
			continue // it may have had no room
		}
		if (c.call.Later || c.call.Meter != nil) && len(during(o.faults, s.start, s.end)) > 0 {
			continue // nobody has heard that it was in vain
		}
		if s.tried && s.err == nil && !s.mistake && s.start >= from && s.end <= to && s.cost[c.use] > c.uses[c.use].Cost {
			sum += s.cost[c.use] - c.uses[c.use].Cost
		}
	}
	return sum
}

// stretch is for how long after a charge by another window a log may leave its key's expiry
// as that has set it, see prelude.lua.
const stretch = 800 * time.Millisecond

// windows holds a log, a counter or a fixed window against its max: when a call is
// admitted, what of the window is not given back, debts and itself are max at most. Of a
// fixed window, twice the max across an edge; see ledgers. The window of a calendar is its
// period.
func (o *oracle) windows(name string, charges []charge) {
	for k, last := range charges {
		u := last.uses[last.use]
		r := o.program.Rules[u.Rule]
		calendar := r.Period != rule.NoPeriod
		fixed := r.Algorithm == runtime.FixedWindow && !calendar
		if calendar && len(o.jumps) > 0 && last.reported[last.use].source == rule.SourceLocal {
			return // by a clock that has not jumped
		}
		sum, debts, from := int64(0), int64(0), last.from(o.history)
		var counted []charge
		for j := k; j >= 0; j-- {
			c := charges[j]
			since := c.from(o.history)
			before := since
			if r.Algorithm == runtime.SlidingLog {
				before -= stretch
			}
			l := o.loosest([]charge{c, last}, before, last.at)
			over := max(last.at-since, c.at-last.from(o.history)) >= l.window-r.Resolution
			if calendar {
				over = !o.inPeriod(r, since, last.at) || !o.inPeriod(r, c.at, last.at) // the clock may step back while it waits
			}
			if j < k && (over || o.forgotten(u, since, last.at) || o.elsewhere(r, u, since, last.at) || o.lapsed(c, last.at)) {
				continue
			}
			counted = append(counted, c)
			sum += c.real(c.use, last.at)
			from = min(from, since)
		}
		l := o.loosest(append(counted, last), from, last.at)
		most := l.max + o.strange(charges, u, from, last.at)
		if fixed {
			most *= 2
		} else {
			debts = o.debts(charges, from, last.from(o.history)-1)
		}
		if r.Lease > 0 {
			most = max(most, o.loosest(counted, from-r.Lease, last.at).max)
		}
		if sum > most || sum+debts > most && last.cost() > 0 && r.Lease == 0 {
			o.wrong("no window holds more than max", "%s (%s) at #%d: %d admitted since %v and %d owed, the most is %d", name, document.Fields(r), last.number, sum, from, debts, most)
		}
	}
}

// lapsed reports whether a charge may have come back by a time because nobody could renew it.
func (o *oracle) lapsed(c charge, at time.Duration) bool {
	if s := c.settled; s.tried && c.call.Meter == nil { // a meter settles later what it has used
		at = min(at, s.end)
	}
	since := c.from(o.history)
	return o.program.Rules[c.uses[c.use].Rule].Reserve > 0 && (at >= o.closed || len(during(o.faults, since-o.recovery(), at)) > 0 || len(during(o.jumps, since, at)) > 0)
}

// strange returns how much settlements of charges that were forgotten before may have given
// back of others. Stores tell by the time of a charge whether it is of before, so they cannot
// where the clock has stepped back between the two, and the same times come again.
func (o *oracle) strange(charges []charge, u use, from, to time.Duration) (sum int64) {
	for _, c := range charges {
		s := c.settled
		if s.tried && o.behind(s.end, false) > o.behind(c.start-1, false) && s.start <= to && s.end >= from && s.cost[c.use] < c.cost() && o.forgotten(u, c.start, max(s.start, min(s.end, to))) {
			sum += c.cost() - s.cost[c.use]
		}
	}
	return sum
}

// elsewhere reports whether the key of a rule, which names the width of layered buckets,
// may have been another one meanwhile.
func (o *oracle) elsewhere(r *runtime.Rule, u use, from, to time.Duration) bool {
	all := o.terms(u, from, to)
	return layered(r) && slices.ContainsFunc(all, func(t terms) bool { return t.window != all[0].window })
}

func layered(r *runtime.Rule) bool { return r.Buckets == rule.LayeredBuckets(4, 5) }

// refunds counts the settlements that may have given something back in a time. Each rounds up to a millionth of an
// event while nothing drains, also where something had drained from the charge before.
func refunds(charges []charge, from, to time.Duration) (n int) {
	for _, c := range charges {
		if s := c.settled; s.tried && s.start <= to && s.end >= from && s.cost[c.use] < c.cost() {
			n++
		}
	}
	return n
}

// buckets holds a bucket against its burst: in any time, no more is admitted that is not
// given back than the burst and what drains in that time.
func (o *oracle) buckets(name string, charges []charge) {
	for k, last := range charges {
		u := last.uses[last.use]
		rule := o.program.Rules[u.Rule]
		if rule.Wait > 0 && rule.Algorithm == runtime.LeakyBucket {
			return // a queue, whose turns bound it
		}
		sum, since, seen := int64(0), last.from(o.history), []charge{}
		for j := k; j >= 0; j-- {
			c := charges[j]
			since = min(since, c.from(o.history)) // the first one may have been charged last
			if o.forgotten(u, since, last.at) {
				break
			}
			seen = append(seen, c)
			sum += c.real(c.use, last.at)
			debts := o.debts(charges, since, last.from(o.history)-1) - o.strange(charges, u, since, last.at)
			l := o.loosest(seen, since-rule.Lease, last.at)
			drained := max(l.rate, o.drains(u, since, last.at)) * float64((last.at - since).Microseconds())
			if float64(sum+debts) > float64(l.burst)+drained+1e-6*float64(1+refunds(charges, since, last.at)) {
				o.wrong("a bucket admits its burst and what drains", "%s (%s) from #%d at %v to #%d at %v: %d admitted and %d owed, the most is %.6g", name, document.Fields(rule), c.number, since, last.number, last.at, sum, debts, float64(l.burst)+drained)
				return
			}
		}
	}
}

// drains returns the highest rate, in events a microsecond, by which a bucket drained for a call
// that may have been charged or settled in a time, also if nobody has heard of it.
func (o *oracle) drains(u use, from, to time.Duration) (rate float64) {
	for _, a := range o.asked {
		if a.over() < from || a.start > to {
			continue
		}
		for i, v := range a.uses {
			if v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) || !a.maybeCharged(i) {
				continue
			}
			for _, t := range o.terms(v, from, to) {
				rate = max(rate, float64(o.highest(o.program.Rules[v.Rule], t.max))/float64(t.window))
			}
		}
	}
	return rate
}

// turns holds a queue against its rate: after the turn of a call, the next one comes no
// sooner than what the call cost has drained. Calls that were given back before another
// came are not in its way.
func (o *oracle) turns(name string, charges []charge) {
	for _, c := range charges {
		for _, other := range charges {
			u := c.uses[c.use]
			if c == other || other.end < c.end || other.end == c.end && other.number <= c.number || o.forgotten(u, min(c.start, other.start), max(c.at, other.at)) {
				continue
			}
			if c.each && !o.still {
				continue // it is told later than it had its turn
			}
			if !o.exact || len(during(o.faults, c.start, other.end)) > 0 || len(during(o.jumps, min(c.start, other.start), max(c.end, other.end))) > 0 || u.Cost == 0 || c.real(c.use, other.at) == 0 || !c.reported[c.use].mode.Refuses() || !other.reported[other.use].mode.Refuses() {
				continue
			}
			if len(o.program.Rules) > 1 && (len(c.uses) > 1 || len(other.uses) > 1) {
				continue // another queue may have kept it back
			}
			l := o.loosest([]charge{c, other}, min(c.start, other.start), other.end)
			apart := time.Duration(float64(c.real(c.use, other.at))/l.rate)*time.Microsecond - time.Microsecond
			// How far apart turns are is promised under one max.
			if got := other.end - c.end; got < apart && !o.varies(u, min(c.start, other.start), other.end) {
				o.wrong("turns are window/max apart", "%s (%s): #%d has its turn %v after #%d, which should be %v", name, document.Fields(o.program.Rules[u.Rule]), other.number, got, c.number, apart)
				return
			}
		}
	}
}

// varies reports whether calls on a key had other terms than each other in a time.
// Those that have left count too, and those that are settled then: they have changed what
// drains.
func (o *oracle) varies(u use, from, to time.Duration) bool {
	seen := map[terms]bool{}
	for _, a := range o.asked {
		for _, v := range a.uses {
			if a.over() < from || a.start > to || !o.meet(&asked{uses: []use{u}}, &asked{uses: []use{v}}) {
				continue
			}
			for _, t := range o.terms(v, min(from, a.start), to) { // it is settled by its terms of then
				seen[t] = true
			}
			if o.adapts(a) {
				return true
			}
		}
	}
	return len(seen) > 1
}

// permits holds a concurrency limit against its max: whenever a call is admitted, those
// that run hold no more, itself included.
func (o *oracle) permits(name string, charges []charge) {
	for k, last := range charges {
		u := last.uses[last.use]
		sum, holders := last.cost(), ""
		for _, c := range charges[:k] {
			if s := c.settled; s.tried && s.start <= last.at || o.forgotten(u, c.from(o.history), last.at) {
				continue
			}
			if s := last.settled; s.tried && s.start <= last.at && c.at == last.at {
				continue // both came at one moment, and the last one may have left before
			}
			if c.process == 0 && o.closed < last.at {
				continue // nobody renews them
			}
			if len(during(o.jumps, c.at, last.at)) > 0 {
				continue // permits lapse by the store's clock before they are renewed
			}
			if window := o.program.Rules[u.Rule].Window; len(during(o.faults, c.at, last.at)) > 0 && last.at-c.at >= window {
				continue // permits lapse while nobody can renew them
			}
			sum += c.cost()
			holders += fmt.Sprintf(" #%d", c.number)
		}
		together := []charge{last} // nobody knows in which order
		for _, c := range charges {
			if c.at >= last.from(o.history) && c.from(o.history) <= last.at {
				together = append(together, c)
			}
		}
		if most := o.loosest(together, last.from(o.history), last.at).max; sum > most {
			o.wrong("no more permits are held than max", "%s at #%d at %v: %d are held, with%s, the most is %d", name, last.number, last.at, sum, holders, most)
		}
	}
}
