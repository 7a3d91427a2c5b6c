package crossing

import (
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// retry holds the RetryAfter of a refusal against the next equal calls: none is admitted
// before it is over, unless something was given back, and one that comes later, and after
// no other, is. That it is no longer than what was used then needs, whatever happens later, see needless.
func (o *oracle) retry(a *asked) {
	if !errors.Is(a.err, runtime.ErrLimited) || a.d.Source != rule.SourceStore && a.d.Source != rule.SourceRecalled {
		return
	}
	queue := false // in which TakeEach does not wait
	permits := false
	for _, u := range a.uses {
		r := o.program.Rules[u.Rule]
		if queue = queue || r.Wait > 0 && r.Algorithm == runtime.LeakyBucket; r.Lease > 0 || queue && a.each {
			return // a process takes units of a lease, and gives them back, when nobody calls; see needless for how long it may be told
		}
		permits = permits || r.Algorithm == runtime.Concurrency
	}
	if permits { // when they come back depends on calls, and is told as a guess
		o.lapseTold(a)
		return
	}
	over := a.from(o.history) + a.d.RetryAfter - time.Microsecond + 1 // the clock shows microseconds
	if queue {
		over -= a.at - a.start // of its Wait a call has left what it did not wait for the store; the next one has all of it
	}
	if a.d.Source == rule.SourceRecalled {
		if len(during(o.faults, 0, a.end)) > 0 {
			return // it may be of counts that the fault has lost
		}
		over -= o.answers() // it is told from the answer on, and the store has refused before that
	}
	for _, b := range o.asked[a.number+1:] {
		if b.start <= a.end || queue && b.each || !slices.Equal(a.uses, b.uses) || a.call.Cancel != b.call.Cancel || b.call.Exempt || a.call.Deadline != b.call.Deadline ||
			len(during(o.changes[1:], a.start, b.at)) > 0 {
			continue
		}
		if len(during(o.faults, a.start, b.at)) > 0 {
			// A process remembers that Redis has refused a call, and goes by it while
			// Redis does not answer. Nobody remembers what a queue refuses.
			passed := b.admitted() || errors.Is(b.err, runtime.ErrUnavailable) && !errors.Is(b.err, runtime.ErrClosed) // which ends a wait
			if passed && o.remembers() > 2*o.answers() && !queue && a.process == b.process && b.at < over && b.d.Source != rule.SourceProcess {
				if given, _ := o.touched(a, b); !given {
					o.wrong("a refusal holds while Redis does not answer", "#%d was told %v at %v, and #%d at %v: %v by %v", a.number, a.d.RetryAfter, a.at, b.number, b.at, b.err, b.d.Source)
				}
			}
			continue
		}
		early := b.admitted() && b.at < over && !o.divides(a) // what others have used decays
		late := errors.Is(b.err, runtime.ErrLimited) && b.d.Source != rule.SourceProcess && !o.setBack(b.end) && b.came >= a.knows+a.d.RetryAfter && !o.passes(a, b)
		if !early && !late {
			continue
		}
		given, taken := o.touched(a, b)
		if early && !given {
			o.wrong("nobody is admitted before RetryAfter", "#%d was told %v at %v, and #%d is admitted at %v", a.number, a.d.RetryAfter, a.at, b.number, b.at)
		}
		if late && !taken {
			o.wrong("a call alone is admitted after RetryAfter", "#%d was told %v at %v, and #%d is refused at %v", a.number, a.d.RetryAfter, a.at, b.number, b.at)
		}
	}
}

// passes reports whether the room may be over that a call was told of when a later one comes: a gap in a
// queue, for who comes when he need not have waited for it any more, and what a tenant may use of that which others
// have, as long as these have used it, where another limit or a block has refused the first call.
func (o *oracle) passes(a, b *asked) bool {
	for i, u := range a.uses {
		r := o.program.Rules[u.Rule]
		if u.Weight > 0 && r.Name == b.d.Rule && (a.d.Blocked || a.reported[i].verdict != observe.VerdictRefused) {
			return true
		}
		wait := r.Wait
		if a.call.Deadline {
			wait = min(wait, a.call.Cancel)
		}
		if r.Wait > 0 && r.Algorithm == runtime.LeakyBucket && b.came > a.knows+a.d.RetryAfter+wait && slices.ContainsFunc(o.asked, func(c *asked) bool {
			return o.meet(c, &asked{uses: []use{u}}) && c.start < a.at && (c.left() || errors.Is(c.err, runtime.ErrLimited) || c.settled.tried)
		}) {
			return true
		}
	}
	return false
}

// lapseTold holds the RetryAfter of a call that only permits keep out against the time until all lapse.
func (o *oracle) lapseTold(a *asked) {
	bound := time.Duration(0)
	for _, u := range a.uses {
		if o.program.Rules[u.Rule].Algorithm != runtime.Concurrency || o.program.Rules[u.Rule].Block > 0 {
			return
		}
		for _, c := range o.asked { // by the window in force when they were taken or renewed
			for _, v := range c.uses {
				for _, t := range o.terms(v, 0, a.at) {
					bound = max(bound, time.Duration(t.window)*time.Microsecond)
				}
			}
		}
	}
	if a.d.RetryAfter > bound+o.behind(a.end, false) && a.d.RetryAfter < endless && len(o.holds) == 0 {
		o.wrong("permits come back within a window", "#%d is told %v, the window is %v", a.number, a.d.RetryAfter, bound)
	}
}

// touched reports whether anything may have been given back to a key of a call between
// it and a later one, and whether anything may have been charged.
func (o *oracle) touched(a, b *asked) (given, taken bool) {
	since := a.start
	if a.d.Source == rule.SourceRecalled { // by a refusal that knows of nothing since
		since -= o.remembers()
	}
	for _, u := range a.uses {
		given = given || o.forgotten(u, since, b.at)
	}
	if o.adapts(a) {
		return true, true
	}
	for _, h := range o.holds {
		if h.from <= b.at && h.to >= since && o.meet(a, &asked{uses: []use{{Rule: h.rule, Key: h.key}}}) {
			given, taken = true, true
		}
	}
	for _, c := range o.asked {
		if !o.meet(a, c) {
			continue
		}
		if c != a && c != b && errors.Is(c.err, runtime.ErrLimited) && c.start <= b.at && c.end >= since && o.blocking(c) {
			taken = true
		}
		if s := c.settled; s.tried && s.start <= b.at && s.end >= since {
			given, taken = true, true
		}
		if o.reserves(a) && c.start <= b.at && slices.ContainsFunc(indexes(c.uses), c.maybeCharged) {
			taken = taken || c.admitted() // it is renewed while it runs, up to the end of the window by which it was charged
			given = given || b.at >= o.closed || len(during(o.jumps, c.start, b.at)) > 0 || len(during(o.changes[1:], c.start, b.at)) > 0 || len(during(o.faults, c.start-o.recovery(), b.at)) > 0
		}
		left := c != b && c.err != nil && !errors.Is(c.err, runtime.ErrLimited)
		if left && c.start <= b.at && c.end+o.answers() >= since {
			given, taken = true, true // it may have been charged, and given back when that is known
		}
		if c.start <= b.at && c.end >= since && !o.sameTerms(a, c) {
			given = true // a bucket has drained by other terms
		}
		if o.carries(a) && (!o.sameTerms(a, c) || len(o.changes) > 1) {
			given = true // what is over a lower max than it was charged by may be forgotten
		}
		used := c.err == nil || slices.ContainsFunc(indexes(c.uses), func(i int) bool { return o.places(c, i, b.at) > 0 })
		if c != a && c != b && used && c.start <= b.at && c.end >= since {
			taken = true
		}
		multiple := c.parts || o.parts && len(c.uses) > 1
		if multiple && c != a && c.start <= b.at && c.end >= since {
			given, taken = true, true // parts of it may have been charged, and given back
		}
	}
	return given, taken
}

// blocking reports whether a limit of a call blocks those that it refuses.
func (o *oracle) blocking(a *asked) bool {
	return slices.ContainsFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Block > 0 })
}

// reserves reports whether a limit of a call has reservations.
func (o *oracle) reserves(a *asked) bool {
	return slices.ContainsFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Reserve > 0 })
}

// carries reports whether a limit of a call carries debts.
func (o *oracle) carries(a *asked) bool {
	return slices.ContainsFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Debt == rule.DebtCarry })
}

// sameTerms reports whether two calls bring the same max and window for the keys that they share.
func (o *oracle) sameTerms(a, b *asked) bool {
	for _, u := range a.uses {
		for _, v := range b.uses {
			if u.Key != v.Key || !o.program.alike(u.Rule, v.Rule) {
				continue
			}
			for _, t := range append(o.terms(u, a.start, a.at), o.terms(v, b.start, b.at)...) {
				if first := o.terms(u, a.start, a.at)[0]; t.max != first.max || t.window != first.window {
					return false
				}
			}
		}
	}
	return true
}

// meet reports whether two calls may have a key in common.
func (o *oracle) meet(a, b *asked) bool {
	for _, u := range a.uses {
		for _, v := range b.uses {
			if u.Key == v.Key && o.program.alike(u.Rule, v.Rule) {
				return true
			}
		}
	}
	return false
}
