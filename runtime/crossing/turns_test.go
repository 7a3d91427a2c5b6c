package crossing

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
)

// drawTurns draws callers of some processes that wait for the same permits, each again and again.
func (s *scope) drawTurns(t *rapid.T, p *program, f features) step {
	st := step{
		Gap:     p.Lasts * time.Duration(rapid.IntRange(0, 4).Draw(t, "gap")) / 2,
		Process: rapid.IntRange(0, p.Processes-1).Draw(t, "process"),
		Times:   rapid.IntRange(1, 8).Draw(t, "callers"),
		Every:   p.Lasts * time.Duration(rapid.IntRange(0, 2).Draw(t, "every")) / 4,
	}
	c := call{Uses: []use{{Cost: 1}}, Next: rapid.IntRange(0, 5).Draw(t, "more")}
	if f.Costs {
		c.Uses[0].Cost = min(p.Rules[0].Max, rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 40}).Draw(t, "cost"))
	}
	c.Holds = p.Lasts * time.Duration(rapid.IntRange(5, 10).Draw(t, "holds")) / 10
	if f.Leaving && rapid.Bool().Draw(t, "leaves") {
		after := p.Lasts * 3
		if s.far && rapid.Bool().Draw(t, "leaves before an answer") {
			after = p.Trip.longest()
		}
		c.Cancel = max(time.Microsecond, after*time.Duration(rapid.IntRange(0, 9).Draw(t, "leaves after"))/9)
		c.Deadline = rapid.Bool().Draw(t, "deadline")
	}
	c.Later = rarely(t, f.Later, "later")
	st.Do = c
	return st
}

// drawLasting draws how long calls last that wait for permits.
func drawLasting(t *rapid.T) time.Duration {
	const ms = time.Millisecond
	return rapid.SampledFrom([]time.Duration{50 * ms, ms, 5 * ms, 20 * ms, 200 * ms, time.Second}).Draw(t, "lasts")
}

// turns holds a process whose calls wait for permits against its turn: none waits longer than twice
// what the others need, or for one and a half of the longest call, and 20 ms for each process. Where calls want
// several permits, one is as if each of the others had it before, whatever its max, since they may want all at once.
//
// It says nothing where a call may wait for something else, where a permit may come back late, and of
// permits that calls of other terms, or those that do not wait, may take.
func (o *oracle) processTurns(a *asked) {
	if !o.exact || len(a.uses) != 1 || a.each || a.more || a.call.Exempt || a.at <= a.start || len(o.jumps)+len(o.faults)+len(o.resets)+len(o.holds) > 0 ||
		len(o.changes) > 1 || o.closed < a.end || o.adapts(a) {
		return
	}
	u, r := a.uses[0], o.program.Rules[a.uses[0].Rule]
	if r.Algorithm != runtime.Concurrency || r.Wait == 0 || !r.Mode.Refuses() || o.program.shares(u.Rule) || u.Cost > max(u.Max, r.Max) || u.Max > 0 {
		return
	}
	since, longest, many, of := a.start, time.Duration(0), u.Cost > 1, map[int]bool{a.process: true}
	for _, c := range o.asked {
		if c == a || !o.meet(a, c) || c.start > a.at || c.over() < a.start {
			continue
		}
		if c.each || len(c.uses) > 1 || c.uses[0].Max > 0 || c.call.Exempt || c.call.Meter != nil || errors.Is(c.err, runtime.ErrClosed) {
			return
		}
		if c.process == a.process && c.at <= a.at && !c.left() {
			since = max(since, c.at)
		}
		many, of[c.process] = many || c.uses[0].Cost > 1, true
		if c.admitted() {
			longest = max(longest, c.over()-c.at)
		}
	}
	n, most := time.Duration(len(of)), time.Duration(r.Max)
	bound := 2 * n * longest
	if !many {
		bound = max(longest*3/2, bound/most)
	}
	bound += n*20*time.Millisecond + 4*n*o.program.Trip.longest()
	if got := a.at - since; longest < endless/8 && got > bound {
		o.wrong("processes take turns", "#%d of process %d waits from %v to %v, which should take %v at most (%s)", a.number, a.process, since, a.at, bound, document.Fields(r))
	}
}

// idlePermits wants no permit to stand unused for long while a call waits: who is first in line asks
// every 50 ms at least. Those that came back first are taken first.
func (o *oracle) idlePermits() {
	if !o.program.Turns || !o.exact {
		return
	}
	type moment struct {
		at   time.Duration
		held int64
	}
	var all []moment
	for _, a := range o.asked {
		if a.uses[0].Cost > 1 {
			return
		}
		if a.admitted() {
			all = append(all, moment{a.at, 1}, moment{a.settled.start, -1})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.held, b.held)) })
	most := 60*time.Millisecond + 4*o.program.Trip.longest() // with that of the return
	free := make([]time.Duration, o.program.Rules[0].Max)    // since when each permit is that is
	for _, m := range all {
		if m.held < 0 {
			free = append(free, m.at)
		} else if len(free) > 0 { // else more than max are held, see permits
			for _, a := range o.asked {
				if m.at > a.start && min(m.at, a.at)-max(free[0], a.start) > most {
					o.wrong("no permits stand unused", "from %v to %v, while #%d waits (%s)", free[0], m.at, a.number, document.Fields(o.program.Rules[0]))
					return
				}
			}
			free = free[1:]
		}
	}
}
