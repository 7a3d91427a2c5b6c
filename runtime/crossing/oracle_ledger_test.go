package crossing

import (
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// ledgers holds each key of a fixed window or a period of the calendar against a ledger of it:
// who is admitted, who is refused and until when, what is told to be left, which shares are told
// and what is kept of periods that are over. Nothing is tolerated, but the ledger ends where the
// history does not say what was charged or when: see book.
func (o *oracle) ledgers() {
	for _, key := range o.history.used() {
		r := o.program.Rules[key.Rule]
		if r.Algorithm != runtime.FixedWindow || r.Prefix == "shared:" || r.Reserve > 0 || r.Lease > 0 || r.Wait > 0 || r.Adaptive != nil && len(o.scales) > 0 {
			continue
		}
		all, until := o.book(key)
		l := &ledger{rule: r, tells: map[told]int64{}, still: o.still}
		for i, e := range all {
			now := o.clock(e.to)
			if from := o.clock(e.from); from.Before(now) && !l.end.After(now) && (r.Period == rule.NoPeriod || l.end.After(from)) {
				until = e.from // it may be of what was before, or begin a window at any moment of a time
				all = all[:i]
				break
			}
			if e.settles {
				o.enter(l, e, now)
			} else if !o.follow(l, e, now) {
				return
			}
		}
		o.shares(l, key, until, len(all) > 0)
	}
}

// enter enters a settlement.
func (o *oracle) enter(l *ledger, e entry, now time.Time) {
	u := e.uses[e.use]
	if e.charged(e.use) && e.settled.err == nil {
		l.settle(u, e.reported[e.use].max, e.settled.cost[e.use]-u.Cost, o.clock(e.asked.at), now)
	}
}

// follow holds a decision against a ledger, and enters it. It reports whether both agree.
func (o *oracle) follow(l *ledger, e entry, now time.Time) bool {
	u, t := e.uses[e.use], e.reported[e.use]
	if !t.yes || t.source != rule.SourceStore || u.Cost == 0 {
		return true
	}
	wrong := func(promise string) bool {
		o.wrong(promise, "#%d at %v (%s): %v is %v, told %v and that %d are left; %d of %d are used until %v and %d are owed until %v", e.number, now.UTC(), document.Fields(l.rule), u, t.verdict, e.d.RetryAfter, e.d.Remaining, l.used, t.max, l.end.UTC(), l.owed, l.due.UTC())
		return false
	}
	room, told := l.room(u, t.max, now), len(e.uses) == 1 && t.mode.Refuses() && !e.d.Blocked
	refused := t.verdict == observe.VerdictRefused || t.verdict == observe.VerdictShadowRefused
	if t.verdict == observe.VerdictAdmitted && u.Cost > room {
		return wrong("a period holds no more than max and what is owed")
	}
	if refused && u.Cost <= room && !e.d.Blocked && !o.blockedBeside(e) {
		return wrong("a period refuses nobody who has room")
	}
	if refused && told && u.Cost <= t.max {
		decided := l.opens(u, t.max, now).Add(-e.d.RetryAfter)
		if decided.After(now) || decided.Before(o.clock(e.from).Truncate(time.Microsecond)) {
			return wrong("a refusal by a period tells when there is room")
		}
	}
	if refused && told && e.d.Remaining != max(0, room) {
		return wrong("a decision of a period tells what is left")
	}
	if e.charged(e.use) {
		l.charge(u, t.max, now)
		if told && e.d.Remaining != t.max-l.used {
			return wrong("a decision of a period tells what is left")
		}
	}
	return o.keeps(l, e, now)
}

// blockedBeside reports whether a key may be blocked or held that is one of several of a call: the
// call may be told of another one.
func (o *oracle) blockedBeside(e entry) bool {
	alone := *e.asked
	alone.uses = e.uses[e.use : e.use+1]
	return len(e.uses) > 1 && o.blockedBefore(&alone)
}

// keeps holds what is kept of periods that are over against a ledger.
func (o *oracle) keeps(l *ledger, e entry, now time.Time) bool {
	if e.usage == nil || e.usage.Past == nil {
		return true
	}
	counts, lost := l.counts(now)
	kept := map[time.Time]int64{}
	for _, p := range e.usage.Past {
		kept[p.End.UTC()] = p.Used
	}
	oldest := e.usage.Past[len(e.usage.Past)-1].Start
	for i, p := range counts {
		used, is := kept[p.end.UTC()]
		if i < int(l.rule.Keep) && p.end.After(oldest) && p.end.After(lost) && (!is || used != p.used) {
			o.wrong("what is kept of a period is what was used of it", "#%d (%s): %+v, want %d until %v", e.number, document.Fields(l.rule), e.usage.Past, p.used, p.end.UTC())
			return false
		}
		delete(kept, p.end.UTC())
	}
	for end, used := range kept {
		if used != 0 && end.After(lost) {
			o.wrong("what is kept of a period is what was used of it", "#%d (%s): %+v, want 0 until %v", e.number, document.Fields(l.rule), e.usage.Past, end)
			return false
		}
	}
	return true
}

// shares wants each share to have been told as often as a ledger says, up to a time.
func (o *oracle) shares(l *ledger, key use, until time.Duration, any bool) {
	got, early := map[told]int64{}, map[told]int64{}
	for _, ev := range o.told {
		if ev.Rule != l.rule.Name || ev.Key != key.name() {
			continue
		}
		of := l.tellOf(key, int64(ev.Percent), ev.Used, ev.Limit, ev.ResetAfter)
		got[of]++
		if ev.at < until {
			early[of]++
		}
	}
	for of, n := range l.tells {
		if got[of] < n {
			o.wrong("a share is told once a period, always", "%+v is told %d times, want %d (%s)", of.ThresholdEvent, got[of], n, document.Fields(l.rule))
		}
	}
	for of, n := range early {
		if n > l.tells[of] {
			o.wrong("a share is told once a period, always", "%+v is told %d times before %v, want %d (%s)", of.ThresholdEvent, n, until, l.tells[of], document.Fields(l.rule))
		}
	}
}
