package crossing

import (
	"errors"
	"time"

	"github.com/rategen/rategen/runtime"
)

// line holds a process whose calls wait for permits against its turn: none waits longer than two
// rounds of the longest call and 20 ms for each process. A permit is as if each of the others had it
// before, whatever its max, since calls may want all permits at once.
//
// It says nothing where a call may wait for something else, where a permit may come back late, and of
// permits that calls of other terms, or those that do not wait, may take.
func (o *oracle) line(a *asked) {
	if !o.exact || len(a.uses) != 1 || a.each || a.more || a.call.Exempt || a.at <= a.start || len(o.jumps)+len(o.faults)+len(o.resets)+len(o.holds) > 0 ||
		len(o.changes) > 1 || o.closed < a.end || o.adapts(a) {
		return
	}
	u, r := a.uses[0], o.program.Rules[a.uses[0].Rule]
	if r.Algorithm != runtime.Concurrency || r.Wait == 0 || !r.Mode.Refuses() || o.program.shares(u.Rule) || u.Cost > max(u.Max, r.Max) || u.Max > 0 {
		return
	}
	since, longest := a.start, time.Duration(0)
	for _, c := range o.asked {
		if c == a || !o.meet(a, c) || c.start > a.at || c.over() < a.start {
			continue
		}
		if c.each || c.left() || len(c.uses) > 1 || c.uses[0].Max > 0 || c.call.Exempt || c.call.Meter != nil || errors.Is(c.err, runtime.ErrClosed) {
			return
		}
		if c.process == a.process && c.at <= a.at {
			since = max(since, c.at)
		}
		if c.admitted() {
			longest = max(longest, c.over()-c.at)
		}
	}
	n := time.Duration(o.program.Processes)
	bound := 2*n*longest + n*20*time.Millisecond + 4*n*o.program.Trip.longest()
	if got := a.at - since; longest < endless/8 && got > bound {
		o.wrong("processes take turns", "#%d of process %d waits from %v to %v, which should take %v at most (%s)", a.number, a.process, since, a.at, bound, ruleText(r))
	}
}
