package crossing

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A history is what callers saw of a program, and what was done to the limiter. Times
// are those of the oracle's clock: they go on with time, and with each step forward of
// the store's clock, but not back with it. So no two events of a store are further apart
// by its own clock.
type history struct {
	mu      sync.Mutex
	program *program
	scope   *scope
	exact   bool // a decision is made at the time at which it is told, or at once
	asked   []*asked
	resets  []*happening
	changes []*happening // of overrides, the first is that of none
	faults  []*happening
	jumps   []*happening // steps of the store's clock
	crowds  []crowded    // that shared no trips
	ended   time.Duration
	left    []string // of keys when all was over
}

// asked is one decision that a caller asked for.
type asked struct {
	number  int
	process int
	call    call
	uses    []use // of call
	each    bool
	start   time.Duration
	heard   bool
	at      time.Duration // when the decision was told to observers
	end     time.Duration // when Take returned: the call's turn
	d       runtime.Decision
	err     error
	told    []told // for each use
	settled settled
	before  *peeked // nil: nobody looked
	after   *peeked
	alone   bool // nothing else was decided between before and after
}

// told is what observers were told about one use.
type told struct {
	yes     bool // they were
	verdict runtime.Verdict
	source  runtime.Source
	max     int64
	window  time.Duration
	mode    runtime.Mode
}

// settled is how a decision was settled.
type settled struct {
	tried    bool
	cost     []int64 // for each use, or -1
	start    time.Duration
	end      time.Duration // endless if nobody was told
	err      error
	mistaken error // of the attempt that was wrong, or nil
	mistake  bool  // there was one
	again    error // of the second one
	twice    bool
}

// peeked is what Peek said.
type peeked struct {
	d   runtime.Decision
	err error
}

// A happening is something that was done to the limiter in a time.
type happening struct {
	from, to  time.Duration
	rule, key int
	fault     fault
	rules     map[int]runtime.Override
	by        time.Duration // of a step of the clock
}

const endless = time.Duration(1<<62 - 1)

// admitted reports whether the call went on.
func (a *asked) admitted() bool { return a.err == nil }

// charged reports for sure that a use was charged to the store, or to the process if
// local.
func (a *asked) charged(i int) bool {
	t := a.told[i]
	return a.admitted() && t.yes && t.verdict == runtime.VerdictAdmitted && a.uses[i].Cost > 0 &&
		(t.source == runtime.SourceStore || t.source == runtime.SourceLease || t.source == runtime.SourceLocal)
}

// maybeCharged reports whether a use may be charged. It is not if the store said so.
func (a *asked) maybeCharged(i int) bool {
	if a.uses[i].Cost == 0 {
		return false
	}
	t := a.told[i]
	return !(t.yes && a.d.Source == runtime.SourceStore && !a.admitted())
}

// real returns what is known at a time to be charged still of a use, and the least it
// may be.
func (a *asked) real(i int, at time.Duration) int64 {
	cost := a.uses[i].Cost
	if s := &a.settled; s.tried && s.start <= at && s.cost[i] >= 0 {
		return min(cost, s.cost[i])
	}
	return cost
}

// most returns the most that may be charged of a use at a time.
func (a *asked) most(i int, at time.Duration) int64 {
	cost := a.uses[i].Cost
	s := &a.settled
	if !s.tried || s.cost[i] < 0 {
		return cost
	}
	if s.err == nil && s.end <= at {
		return s.cost[i]
	}
	return max(cost, s.cost[i])
}

// account names what a use is charged to.
func (h *history) account(a *asked, i int) string {
	u := a.uses[i]
	name := fmt.Sprint(u.Rule, "/", u.Key)
	if h.program.Rules[u.Rule].Prefix == "shared:" {
		name = fmt.Sprint("shared/", u.Key)
	}
	if a.told[i].source == runtime.SourceLocal {
		name += fmt.Sprint(" in process ", a.process)
	}
	return name
}

// A charge is a use that was charged.
type charge struct {
	*asked
	use int
}

// from is the earliest time at which the charge was made.
func (c charge) from(h *history) time.Duration {
	if h.exact && len(during(h.faults, c.start, c.at)) == 0 {
		return c.at
	}
	return c.start
}

func (c charge) cost() int64 { return c.uses[c.use].Cost }

// accounts returns what was charged for sure, by what it was charged to.
func (h *history) accounts() map[string][]charge {
	all := map[string][]charge{}
	for _, a := range h.asked {
		for i := range a.uses {
			if a.charged(i) {
				name := h.account(a, i)
				all[name] = append(all[name], charge{a, i})
			}
		}
	}
	for _, charges := range all {
		sort.SliceStable(charges, func(i, j int) bool { return charges[i].at < charges[j].at })
	}
	return all
}

// during returns the happenings that may have been under way in a time.
func during(all []*happening, from, to time.Duration) (some []*happening) {
	for _, x := range all {
		if x.from <= to && x.to >= from {
			some = append(some, x)
		}
	}
	return some
}

// forgotten reports whether a key may have been forgotten between two times.
func (h *history) forgotten(u use, from, to time.Duration) bool {
	for _, r := range during(h.resets, from, to) {
		same := r.rule == u.Rule || h.program.Rules[r.rule].Prefix == "shared:" && h.program.Rules[u.Rule].Prefix == "shared:"
		if same && r.key == u.Key {
			return true
		}
	}
	for _, f := range during(h.faults, from, to) {
		if f.fault == flushed || f.fault == killed {
			return true
		}
	}
	// When a clock has stepped back by more than a window, nothing counts of before.
	back, window := time.Duration(0), endless
	for _, j := range during(h.jumps, from, to) {
		back -= min(0, j.by)
	}
	for _, t := range h.terms(u, from, to) {
		window = min(window, time.Duration(t.window)*time.Microsecond)
	}
	return back > window-h.program.Rules[u.Rule].Resolution
}
