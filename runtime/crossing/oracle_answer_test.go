package crossing

import (
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// errors holds the error of a call against what may have caused it.
func (o *oracle) errors(a *asked) {
	troubled := o.troubled(a)
	switch {
	case a.err == nil, errors.Is(a.err, runtime.ErrLimited):
		for i, t := range a.reported {
			if t.yes && (t.source == rule.SourceFailure || t.source == rule.SourceLocal) && !troubled && o.enforces(a, i) {
				o.wrong("the store decides while it can", "#%d: %v by %v", a.number, a.uses[i], t.source)
			}
		}
		if a.d.Source == rule.SourceFailure && a.err != nil {
			o.wrong("a failure refuses nobody", "#%d: %v", a.number, a.err)
		}
	case a.left():
		if a.call.Cancel == 0 {
			o.wrong("only a caller's context ends its call", "#%d: %v", a.number, a.err)
		}
	case errors.Is(a.err, runtime.ErrInvalidKey): // see nobodies
	case errors.Is(a.err, runtime.ErrClosed):
		if a.process > 0 || a.end < o.closed {
			o.wrong("only Close ends the wait of a call by itself", "#%d: %v", a.number, a.err)
		}
	case errors.Is(a.err, runtime.ErrUnavailable):
		if !troubled {
			o.wrong("the store decides while it can", "#%d: %v", a.number, a.err)
		}
	default:
		o.wrong("a valid call has no other error", "#%d: %v", a.number, a.err)
	}
}

// enforces reports whether a use may refuse its call.
func (o *oracle) enforces(a *asked, i int) bool {
	return slices.ContainsFunc(o.terms(a.uses[i], a.start, a.at), func(t terms) bool { return t.mode == runtime.ModeEnforce })
}

// troubled reports whether a fault may have kept the store from deciding what a call
// enforces.
func (o *oracle) troubled(a *asked) bool {
	if o.program.Hasty {
		return true
	}
	for _, f := range during(o.faults, a.start-o.recovery(), a.end) {
		if f.fault != forbidden && f.fault != slow && f.fault != flushed {
			return true
		}
		if f.fault == forbidden && !slices.ContainsFunc(indexes(a.uses), func(i int) bool { return o.enforces(a, i) }) {
			return true
		}
	}
	return o.quiet(a) || o.stalled(a)
}

// stalled reports whether the machine was so busy during a call that this may have had no answer in time, or before
// it, so that nobody asked until the next probe.
func (o *oracle) stalled(a *asked) bool { return len(during(o.busy, a.start-untilProbe, a.end)) > 0 }

// quiet reports whether a call comes before its process knows that a fault is over: the first one
// that reaches the store may find connections that the fault has broken, and then nobody asks until
// the next probe.
func (o *oracle) quiet(a *asked) bool {
	last := time.Duration(-1)
	for _, f := range during(o.faults, 0, a.start) {
		if f.fault != forbidden && f.fault != slow && f.fault != flushed {
			last = max(last, f.to)
		}
	}
	first, probing := true, false
	for _, b := range o.asked {
		switch {
		case b == a || b.process != a.process || b.start <= last || b.start > a.start || b.d.Source == rule.SourceNone:
		case b.d.Source == rule.SourceStore && b.end < a.start:
			return false
		case b.d.Source == rule.SourceStore:
			probing = true
		default:
			first = first && b.end > a.start-untilProbe
		}
	}
	return !o.still && last >= 0 && (first || probing)
}

// untilProbe is how long it takes at most until a store that did not answer is asked again.
const untilProbe = 250 * time.Millisecond

// recovery is how long after a fault the store may not decide yet.
func (o *oracle) recovery() time.Duration {
	if o.still {
		return 0
	}
	return 2 * time.Second
}

// settlement holds a settlement against its promises.
func (o *oracle) settlement(a *asked) {
	s := a.settled
	if !s.tried || o.program.Hasty || len(during(o.faults, s.start-o.recovery(), min(s.end, o.ended)))+len(during(o.busy, s.start, s.end)) > 0 {
		return
	}
	if s.err != nil && !(s.mistake && s.mistaken == nil) {
		o.wrong("a decision is settled once, by its own limiter", "#%d: %v (mistaken attempt: %v)", a.number, s.err, s.mistaken)
	}
	charged := slices.ContainsFunc(indexes(a.uses), func(i int) bool { return a.charged(i) && s.cost[i] >= 0 })
	if s.twice && charged && !errors.Is(s.again, runtime.ErrSettled) {
		o.wrong("a decision is settled once", "#%d, a second time: %v", a.number, s.again)
	}
}

// looks holds what Peek said against the decision in between, at the same moment: it says
// the same, and a call that is refused leaves no trace.
func (o *oracle) looks(a *asked) {
	if a.before == nil || a.after == nil || !a.alone || a.start != a.end || a.before.err != nil || a.after.err != nil {
		return
	}
	if o.isOff(a) || a.call.Exempt { // Peek tells what would be without the kill switch
		return
	}
	if o.adapts(a) || a.d.Source == rule.SourceProcess || a.err != nil && !errors.Is(a.err, runtime.ErrLimited) || len(during(o.faults, a.start, a.end)) > 0 {
		return
	}
	for _, u := range a.uses {
		if r := o.program.Rules[u.Rule]; r.Lease > 0 || r.Wait > 0 || r.Algorithm == runtime.Concurrency {
			return // Peek does not wait, and leases and renewals go on meanwhile
		}
	}
	for _, c := range o.asked { // a timer gives back what a meter has in advance, perhaps at the same moment
		if s := c.settled; c.call.Meter != nil && s.tried && s.start <= a.at && s.end >= a.at && o.meet(a, c) {
			return
		}
	}
	before, after := a.before.d, a.after.d
	if u := a.usage; u != nil && after.Source == rule.SourceStore && (u.Rule != after.Rule || u.Remaining != after.Remaining || u.Limit != after.Limit || u.Blocked != after.Blocked || after.ResetAfter > 0 && u.ResetAfter != after.ResetAfter) {
		o.wrong("Usage says what Peek does", "#%d: %+v, and %+v", a.number, after, *u)
	}
	if o.reserves(a) { // a renewal of the same moment may come in between
		before.RetryAfter, after.RetryAfter = a.d.RetryAfter, a.d.RetryAfter
	}
	if begins := a.d.Blocked && (!before.Blocked || len(a.uses) > 1); begins { // which Peek does not
		before.RetryAfter, after.RetryAfter, after.ResetAfter, after.Remaining = a.d.RetryAfter, a.d.RetryAfter, before.ResetAfter, before.Remaining
	}
	if before.Allowed != a.admitted() || before.RetryAfter != a.d.RetryAfter {
		o.wrong("Peek says what Take does", "#%d: %+v, and then %+v", a.number, before, a.d)
	}
	if !a.admitted() && (after.Remaining != before.Remaining || after.RetryAfter != before.RetryAfter || after.ResetAfter != before.ResetAfter) {
		o.wrong("a refused call writes nothing", "#%d: %+v before and %+v after", a.number, before, after)
	}
}
