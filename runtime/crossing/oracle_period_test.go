package crossing

import (
	"errors"
	"time"
	_ "time/tzdata" // the same on all machines

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// edge returns when the period of a rule ends that a time lies in.
func (h *history) edge(r *runtime.Rule, at time.Time) time.Time {
	if h.edges[r] == nil {
		h.edges[r] = []time.Time{edge(r, h.began.Add(-time.Hour))} // clocks step back by less
	}
	for _, known := range h.edges[r] {
		if known.After(at) {
			return known
		}
	}
	last := h.edges[r][len(h.edges[r])-1]
	for !last.After(at) {
		last = edge(r, last)
		h.edges[r] = append(h.edges[r], last)
	}
	return last
}

// edge returns when the period of a rule ends that a time lies in: the first quarter of an
// hour at which the local date is one that periods begin with, or, if the zone has left that
// out, one after it.
func edge(r *runtime.Rule, at time.Time) time.Time {
	location, err := time.LoadLocation(r.Zone)
	if err != nil {
		panic(err) // no program has such a rule
	}
	year, month, day := at.In(location).Date()
	for i := 1; ; i++ {
		date := time.Date(year, month, day+i, 0, 0, 0, 0, time.UTC)
		last := date.AddDate(0, 0, 1).Month() != date.Month()
		if r.Period == rule.Week && (int(date.Weekday())+6)%7+1 != max(r.Anchor, 1) {
			continue
		}
		if r.Period == rule.Month && date.Day() != max(r.Anchor, 1) && !(last && date.Day() < r.Anchor) {
			continue
		}
		for begin := date.Add(-15 * time.Hour); ; begin = begin.Add(15 * time.Minute) {
			year, month, day := begin.In(location).Date()
			if shown := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); !shown.Before(date) {
				return begin
			}
		}
	}
}

// roams reports whether the period of a rule is that of the call which begins it. Only a ledger
// knows that, so a rule has what a ledger follows.
func (p *program) roams(r *runtime.Rule) bool {
	return p.Roams && r.Period != rule.NoPeriod && r.Reserve == 0 && r.Lease == 0 && r.Wait == 0 && r.Prefix != "shared:"
}

// clock returns what the clock of the store shows at a time, at the least.
func (h *history) clock(at time.Duration) time.Time {
	shown := h.began.Add(at)
	for _, j := range during(h.jumps, 0, at) {
		shown = shown.Add(min(0, j.by))
	}
	return shown
}

// latest returns the most that the clock of the store has shown by a time.
func (h *history) latest(at time.Duration) time.Time {
	most, back := h.clock(at), time.Duration(0)
	for _, j := range during(h.jumps, 0, at) {
		if before := h.began.Add(j.from + back); before.After(most) {
			most = before
		}
		back += min(0, j.by)
	}
	return most
}

// inPeriod reports whether a charge that was made at a time counts for sure in the period of
// one that was made later. A period that has begun goes on when the clock steps back.
func (h *history) inPeriod(r *runtime.Rule, at, later time.Duration) bool {
	return h.edge(r, h.clock(at)).After(h.latest(later))
}

// period holds how long a call is refused against the end of the period by the calendar. What
// is reserved may come back before that, and what is owed may be used of the next period.
func (o *oracle) period(a *asked) {
	if len(a.uses) != 1 || !errors.Is(a.err, runtime.ErrLimited) || a.d.Source != rule.SourceStore || len(o.jumps) > 0 {
		return
	}
	r := o.program.Rules[a.uses[0].Rule]
	if r.Period == rule.NoPeriod || o.program.roams(r) || a.d.Blocked || a.d.RetryAfter == runtime.Never {
		return
	}
	from, to := o.edge(r, o.clock(a.start)), o.edge(r, o.clock(a.at))
	if r.Debt == rule.DebtCarry {
		to = o.edge(r, to)
	}
	if told := o.clock(a.at).Add(a.d.RetryAfter); r.Reserve == 0 && told.Before(from.Add(-o.lateness())) || o.clock(a.start).Add(a.d.RetryAfter).After(to.Add(o.lateness())) {
		o.wrong("a period ends when the calendar says", "#%d (%s) is refused for %v at %v, want until %v", a.number, document.Fields(r), a.d.RetryAfter, o.clock(a.at).UTC(), to.UTC())
	}
}
