package crossing

import (
	"cmp"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A ledger is the count of one key by fixed windows or periods of the calendar, as the
// documentation has it: which of them is in progress, whatever zone and anchor a call brings,
// what is used of it and owed to the next one, and which shares of it are to be told.
type ledger struct {
	rule       *runtime.Rule
	still      bool      // time stands still while something is settled
	begin, end time.Time // of what is in progress
	used, owed int64
	due        time.Time      // when the one ends in which what is owed is used
	told       int64          // the highest share in percent, times its max
	past       []usedUp       // the last one first
	lost       time.Time      // up to when it may be lost
	tells      map[told]int64 // how often, of all periods; without a time
}

// A usedUp is what was used of a period that is over.
type usedUp struct {
	end  time.Time
	used int64
}

// edgeAfter returns when what a use begins at a time ends.
func (l *ledger) edgeAfter(u use, at time.Time) time.Time {
	r := *l.rule
	if r.Period == rule.NoPeriod {
		return at.Add(r.Window)
	}
	if u.Zone != "" {
		r.Zone, r.Anchor = u.Zone, u.Anchor
	}
	return edge(&r, at)
}

// at begins another window or period with what is owed, if the last one is over.
func (l *ledger) at(u use, now time.Time) {
	if now.Before(l.end) {
		return
	}
	begin, carried := now, int64(0)
	if now.Before(l.due) && l.owed > 0 {
		carried = l.owed
		if l.rule.Period == rule.NoPeriod {
			begin = l.end // so that the debt is not owed for longer than a window
		}
	}
	l.past, l.lost = l.counts(now)
	l.begin, l.end, l.used, l.owed, l.due, l.told = begin, l.edgeAfter(u, begin), carried, 0, time.Time{}, 0
}

// room returns how much of a max is left for a use at a time.
func (l *ledger) room(u use, most int64, now time.Time) int64 {
	next := *l
	next.at(u, now)
	return most - next.used
}

// opens returns when there is room for a use that has none, if nobody else comes.
func (l *ledger) opens(u use, most int64, now time.Time) time.Time {
	if at := l.end; at.After(now) && u.Cost <= l.room(u, most, at) {
		return at
	}
	return l.due
}

// charge counts a use that has room.
func (l *ledger) charge(u use, most int64, now time.Time) {
	l.at(u, now)
	l.used += u.Cost
	l.tell(u, most, now)
}

// settle counts the difference to what a use was charged at a time. What it takes beyond the max
// is owed, and what it gives back pays. A charge of what is over gives nothing back.
func (l *ledger) settle(u use, most, diff int64, charged, now time.Time) {
	if diff == 0 || diff < 0 && (!now.Before(l.end) || charged.Before(l.begin)) {
		return
	}
	if l.rule.Debt == rule.DebtForgive && diff > 0 {
		if diff = min(diff, max(0, l.room(u, most, now))); diff == 0 {
			return
		}
	}
	l.at(u, now)
	before := l.used
	l.used += diff
	if diff < 0 {
		l.owed = max(0, l.owed+diff)
	} else if beyond := l.used - max(before, most); l.rule.Debt == rule.DebtCarry && beyond > 0 {
		l.owed += beyond
		if l.due.IsZero() {
			l.due = l.edgeAfter(u, l.end)
		}
	}
	l.tell(u, most, now)
}

// tell notes which shares are to be told of a count that has changed: those that are used, unless
// one was that is as much or more.
func (l *ledger) tell(u use, most int64, now time.Time) {
	if l.rule.Period == rule.NoPeriod {
		return
	}
	for _, percent := range []int64{80, 100} {
		share := percent * most
		if l.rule.Adaptive != nil {
			share = percent // the load moves its max
		}
		if 100*l.used >= percent*most && share > l.told {
			l.told = share
			l.tells[l.tellOf(u, percent, l.used, most, l.end.Sub(now))]++
		}
	}
}

// tellOf returns what is told of a share. When a settlement was is not known where time passes
// meanwhile, and so not how much is left of the period then.
func (l *ledger) tellOf(u use, percent, used, most int64, reset time.Duration) told {
	if !l.still {
		reset = 0
	}
	return told{ThresholdEvent: observe.ThresholdEvent{Rule: l.rule.Name, Key: u.name(), Percent: int(percent), Used: used, Limit: most, ResetAfter: reset}}
}

// counts returns what is kept of periods that are over at a time, the last one first, and up to
// which of them the key may be lost: it lives for as many periods as are kept, and if the next
// one is of another anchor that may be too short.
func (l *ledger) counts(now time.Time) (all []usedUp, lost time.Time) {
	if now.Before(l.end) || l.end.IsZero() {
		return l.past, l.lost
	}
	length := 24 * time.Hour * time.Duration(map[rule.Period]int{rule.Day: 1, rule.Week: 7, rule.Month: 31}[l.rule.Period])
	lost = l.lost
	if now.Sub(l.end) >= length*time.Duration(l.rule.Keep) {
		lost = l.end
	}
	return slices.Insert(slices.Clone(l.past), 0, usedUp{l.end, l.used}), lost
}

// An entry is a decision or a settlement of a key, which came at some moment of a time.
type entry struct {
	from, to time.Duration
	turn     int64
	*asked
	use     int
	settles bool
}

// prompt reports whether an entry was made as soon as it was begun: among those of one moment
// the turns then say which was the first. A call may have waited for no time.
func (o *oracle) prompt(e entry) bool { return e.settles || e.start == e.from && !o.waits(e.asked) }

// waits reports whether a rule of a call lets it wait.
func (o *oracle) waits(a *asked) bool {
	return slices.ContainsFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Wait > 0 })
}

// book returns the decisions and settlements of a key, in their order, up to the first one after
// which nobody knows what is counted.
func (o *oracle) book(key use) (all []entry, until time.Duration) {
	until = o.closed
	for _, x := range slices.Concat(o.faults, o.jumps, o.changes[1:]) {
		until = min(until, x.from)
	}
	for _, x := range o.resets {
		if x.rule == key.Rule && x.key == key.Key {
			until = min(until, x.from)
		}
	}
	for _, a := range o.asked {
		for i, u := range a.uses {
			if u.Rule != key.Rule || u.Key != key.Key || a.call.Exempt {
				continue
			}
			all = append(all, entry{a.from(o.history), a.at, a.turn, a, i, false})
			if s := a.settled; s.tried && s.cost[i] >= 0 {
				all = append(all, entry{s.start, s.end, s.turn, a, i, true})
			}
			if o.open(a) {
				until = min(until, a.start)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y entry) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.turn, y.turn)) })
	for i, e := range all {
		if i > 0 && e.from <= all[i-1].to && !(o.still && o.prompt(e) && o.prompt(all[i-1])) {
			return all[:i-1], all[i-1].from // nobody knows which was the first
		}
		if e.to >= until || e.to > e.from && o.still {
			return all[:i], min(until, e.from)
		}
	}
	return all, until
}

// open reports whether it is not known of a call what it has charged, and when.
func (o *oracle) open(a *asked) bool {
	return a.left() || a.each || a.more || a.call.Meter != nil || a.settled.mistake
}
