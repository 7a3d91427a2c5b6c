package crossing

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A history is what callers saw of a program, and what was done to the limiter. Times
// are those of the oracle's clock: they go on with time, and with each step forward of
// the store's clock, but not back with it. So no two events of a store are further apart
// by its own clock.
type history struct {
	mu      sync.Mutex
	program *program
	scope   *scope
	began   time.Time
	edges   map[*runtime.Rule][]time.Time // of periods of the calendar, oldest first
	exact   bool                          // a decision was made at the time that is noted, or at once
	still   bool                          // and time stands still meanwhile
	parts   bool                          // limits of a call may be decided one after the other
	asked   []*asked
	resets  []*happening
	changes []*happening // of overrides, the first is that of none
	faults  []*happening
	jumps   []*happening // steps of the store's clock
	busy    []*happening // when the machine was too busy to answer, see pulse
	crowds  []crowded    // that shared no trips
	holds   []*happening
	scales  []float64     // factors of limits that adapt
	closed  time.Duration // the first limiter was, or never
	ended   time.Duration
	told    []told // shares of periods
	surged  []surged
	listed  [][]observe.Finding // by each process, at the end
	lived   time.Duration       // by then
	left    []string            // of keys when all was over
	odd     []string            // what contradicted a promise when it was done
	steps   []line              // what else was done, as documents have it
	unasked []*asked            // messages of meters that were charged to nothing
}

// asked is one decision that a caller asked for.
type asked struct {
	number   int
	process  int
	call     call
	uses     []use // of call
	each     bool
	more     bool      // of a call that is metered
	parts    bool      // and charged in parts, one after the other
	portions [][]int64 // what each trip of it asked for, by use
	start    time.Duration
	turn     int64 // of the start, among all that began or was over
	heard    bool
	at       time.Duration // when it was decided or, where that is not known, told to observers
	end      time.Duration // when Take returned: the call's turn
	came     time.Duration // the start and the end to the nanosecond
	knows    time.Duration
	d        runtime.Decision
	err      error
	reported []reported // for each use
	settled  settled
	before   *peeked // nil: nobody looked
	after    *peeked
	usage    *runtime.Usage // of the only use, after the call; nil: nobody looked
	alone    bool           // nothing else was decided between before and after
}

// reported is what observers were told about one use.
type reported struct {
	yes     bool // they were
	verdict observe.Verdict
	source  rule.Source
	max     int64
	limit   int64 // that much could be admitted at most
	window  time.Duration
	mode    runtime.Mode
}

// settled is how a decision was settled.
type settled struct {
	tried    bool
	cost     []int64 // for each use, or -1
	start    time.Duration
	came     time.Duration // the start to the nanosecond
	end      time.Duration // endless if nobody was told
	over     time.Duration // when its process had done all that it has to do for it
	turn     int64         // of that, among all that began or was over
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
	process   int // of a reset
	fault     fault
	rules     map[int]rule.Override
	off       bool          // all limits are
	by        time.Duration // of a step of the clock, or for how long a key is held
	err       error
}

const endless = time.Duration(1<<62 - 1)

// admitted reports whether the call went on.
func (a *asked) admitted() bool { return a.err == nil }

// left reports whether the caller has left before it was told what is decided. A store that gives no answer in time
// has a context that has ended, too.
func (a *asked) left() bool {
	return !errors.Is(a.err, runtime.ErrUnavailable) && (errors.Is(a.err, context.Canceled) || errors.Is(a.err, context.DeadlineExceeded))
}

// over returns when the last thing was done for the call.
func (a *asked) over() time.Duration {
	if a.settled.tried {
		return a.settled.end
	}
	return a.end
}

// add adds a decision.
func (h *history) add(a *asked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.number = len(h.asked)
	h.asked = append(h.asked, a)
}

// contradict notes what contradicts a promise when it is done.
func (h *history) contradict(promise, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.odd = append(h.odd, promise+": "+fmt.Sprintf(format, args...))
}

// charged reports for sure that a use was charged to the store, or to the process if
// local.
func (a *asked) charged(i int) bool {
	t := a.reported[i]
	return a.admitted() && t.yes && t.verdict == observe.VerdictAdmitted && a.uses[i].Cost > 0 &&
		(t.source == rule.SourceStore || t.source == rule.SourceLease || t.source == rule.SourceLocal)
}

// maybeCharged reports whether a use may be charged. It is not if the store said so, but that of a call which left
// when it had a place in a queue, or whose limiter was closed then.
func (a *asked) maybeCharged(i int) bool {
	if a.uses[i].Cost == 0 || a.call.Exempt || errors.Is(a.err, runtime.ErrInvalidKey) {
		return false
	}
	t := a.reported[i]
	placed := (a.left() || errors.Is(a.err, runtime.ErrClosed)) && t.verdict == observe.VerdictAdmitted
	return !(t.yes && a.d.Source == rule.SourceStore && !a.admitted()) || placed
}

// real returns what is known at a time to be charged still of a use, and the least it
// may be.
func (a *asked) real(i int, at time.Duration) int64 {
	cost := charge{a, i}.cost()
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
	if h.program.shares(u.Rule) {
		name = fmt.Sprint("shared/", u.Key)
	}
	if layered(h.program.Rules[u.Rule]) {
		name += fmt.Sprint(" in ", a.reported[i].window) // which the key names
	}
	if a.reported[i].source == rule.SourceLocal {
		name += fmt.Sprint(" in process ", a.process)
	}
	return name
}

// A charge is a use that was charged.
type charge struct {
	*asked
	use int
}

// from is the earliest time at which a decision was made. Those of TakeEach are told together,
// when the last one is known, and those of parts together with the last part.
func (a *asked) from(h *history) time.Duration {
	if h.exact && !a.parts && (h.still || !a.each) && len(during(h.faults, a.start, a.at)) == 0 && len(during(h.jumps, a.start, a.at)) == 0 {
		return a.at
	}
	return a.start
}

// cost returns how much was charged: no more than its share, if a process did alone.
func (c charge) cost() int64 {
	cost := c.uses[c.use].Cost
	if t := c.reported[c.use]; t.source == rule.SourceLocal {
		cost = min(cost, t.limit)
	}
	return cost
}

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
