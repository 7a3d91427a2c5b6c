// Package replay asks what recorded calls would have been answered under other rules. It decides
// them by the engine of a limiter, in memory and at the times that they had.
package replay

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Bounds of a replay.
const (
	maxReordered = 100_000 // events that wait to be put in the order in which their calls came
	maxHeap      = 2 << 30 // bytes of live memory: few bytes of a record can charge many events
	checkedEvery = 4096    // events
)

// A run is a replay under way.
type run struct {
	Records
	settled     map[string]bool // rules whose decisions are settled, or some are
	simulations [2]*simulation  // before and after
	check       *simulation     // by the rules of the record, at its times
	waits       bool            // some rule lets calls wait
	longest     time.Duration   // for which one does
	early       agenda[*job]    // what has come, and is not replayed yet
	changed     []bool          // parts of which the change changes something: others are replayed once
	one         job             // that is decided at once
	events      int
	result      *Result
}

// The errors of files without a call: what has one is said by the first that fits.
var (
	ErrNewer = errors.New("the records are of a newer version of the format than this reads: take a newer ratectl")
	ErrNone  = errors.New("this is no recording: give files that package raterecord has written")
	ErrEmpty = errors.New("the records have no call: give the limiter the observer of the recorder, and close both")
)

// Run replays the records by their rules, and by those that a change makes of them.
func (rs *Records) Run(change Change) (*Result, error) {
	f, s := rs.files, rs.survey
	r := &run{Records: *rs, settled: map[string]bool{}}
	r.result = newResult(f, s)
	for rule := range s.Settled {
		r.settled[f.Names.Rules[rule].Declared.Name] = true
	}
	r.changed = make([]bool, len(f.Names.Rules))
	for i, state := range f.Names.Rules {
		now, most, on := change(state, state.Rule.Max)
		_, other, _ := change(state, state.Rule.Max+1)
		if !on || most != state.Rule.Max || other != most+1 || now != state.Rule && !reflect.DeepEqual(now, state.Rule) {
			r.changed[rs.parts[i]] = true
		}
		if !rs.has(uint32(i)) {
			continue
		}
		r.longest = max(r.longest, state.Rule.Wait)
		if on {
			r.longest = max(r.longest, now.Wait)
		}
	}
	r.waits = s.Waited > 0 || r.longest > 0
	r.check = newSimulation(r, same, true)
	r.simulations = [2]*simulation{r.check, newSimulation(r, change, !r.waits)}
	if r.waits {
		r.simulations[0] = newSimulation(r, same, false)
	}
	if err := rs.each(r.event); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	r.result.complete(r)
	return r.result, nil
}

// event replays an event, or keeps it until no call that came before it can follow.
func (r *run) event(ev *record.Event) error {
	if r.events++; r.events%checkedEvery == 0 && heapExceeds(r.maxHeap) {
		return fmt.Errorf("a replay of the records takes more than %d MiB of memory: name fewer files", r.maxHeap>>20)
	}
	if !r.waits {
		return r.play(ev, nil)
	}
	if err := r.verify(ev); err != nil {
		return err
	}
	j := &job{ev: *ev}
	j.ev.Limits = slices.Clone(ev.Limits)
	r.early.add(ev.Time-ev.Waited, j)
	for r.early.due(ev.Time-r.survey.Waited) || r.early.len() > maxReordered {
		next, _ := r.early.pop()
		if err := r.play(&next.ev, next); err != nil {
			return err
		}
	}
	return nil
}

// heapExceeds reports whether more bytes are live than so many.
func heapExceeds(most uint64) bool {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	if heap[0].Value.Uint64() > most { // what is not live counts until it is swept
		debug.FreeOSMemory()
		metrics.Read(heap)
	}
	return heap[0].Value.Uint64() > most
}

// finish replays what is left.
func (r *run) finish() error {
	for r.early.len() > 0 {
		next, _ := r.early.pop()
		if err := r.play(&next.ev, next); err != nil {
			return err
		}
	}
	for _, sim := range r.simulations {
		if !sim.exact {
			if err := sim.advance(r.survey.To + r.longest.Microseconds() + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify has the simulation decide that is to decide as was recorded.
func (r *run) verify(ev *record.Event) error {
	if err := r.check.advance(ev.Time); err != nil {
		return err
	}
	r.check.decider.Now = ev.Time
	if ev.Settles {
		return r.check.settle(ev)
	}
	j := job{ev: *ev}
	if isElsewhere(ev) || undecided(ev) {
		return nil
	}
	if _, err := r.check.decide(&j, 0, ev.Time); err != nil {
		return err
	}
	if r.waitedBesideOthers(ev) {
		r.result.queued++
		return nil
	}
	r.result.compare(ev, &j.outcomes[0])
	return nil
}

// waitedBesideOthers reports whether a call has waited in a queue beside other limits, which were
// charged at its turn. No record says when it took its place in the queue, which others found taken
// from then on.
func (r *run) waitedBesideOthers(ev *record.Event) bool {
	return ev.Waited > 0 && (len(ev.Limits) > 1 || ev.Partial) && slices.ContainsFunc(ev.Limits, func(l record.Limit) bool {
		of := r.files.Names.Rules[l.Rule].Rule
		return of.Wait > 0 && algorithm.RowOf(of.Algorithm).Meets(algorithm.Wait) && of.Mode.Refuses()
	})
}

// play replays an event in both simulations. Without waits the simulation before is the one that verifies.
func (r *run) play(ev *record.Event, j *job) error {
	came := ev.Time - ev.Waited
	if !r.waits {
		came = ev.Time
	}
	simulations := r.simulations[:]
	if !r.changed[r.parts[ev.Limits[0].Rule]] {
		simulations = simulations[:1]
	}
	for _, sim := range simulations {
		if err := sim.advance(came); err != nil {
			return err
		}
		sim.decider.Now = came
	}
	if ev.Settles {
		for _, sim := range simulations {
			if err := sim.settle(ev); err != nil {
				return err
			}
		}
		return nil
	}
	if undecided(ev) {
		r.result.Undecided++
		return nil
	}
	if j == nil {
		j = &r.one
		*j = job{ev: *ev}
	}
	if isElsewhere(ev) {
		for n := range r.simulations {
			j.outcomes[n].elsewhere = true
		}
		r.result.count(j)
		return nil
	}
	j.open, j.same = len(simulations), len(simulations) == 1
	for n, sim := range simulations {
		if err := r.try(sim, j, n, came); err != nil {
			return err
		}
	}
	return nil
}

// try decides a call in a simulation, or has it come again.
func (r *run) try(sim *simulation, j *job, n int, came int64) error {
	again, err := sim.decide(j, n, came)
	if err != nil {
		return err
	}
	if again >= 0 {
		sim.plan(sim.decider.Now+max(1, again.Microseconds()), task{tries: j, simulation: n, since: came})
		return nil
	}
	if j.open--; j.open > 0 {
		return nil
	}
	if !r.waits {
		r.result.compare(&j.ev, &j.outcomes[0])
	}
	if j.same {
		j.outcomes[1] = j.outcomes[0]
	}
	r.result.count(j)
	return nil
}

// undecided reports whether a call was not decided by the store: nothing of it counts there.
func undecided(ev *record.Event) bool {
	for i := range ev.Limits {
		switch l := &ev.Limits[i]; l.Source {
		case rule.SourceLocal, rule.SourceFailure, rule.SourceProcess:
			return true
		default:
			if l.Verdict == observe.VerdictUnavailable {
				return true
			}
		}
	}
	return false
}

// isElsewhere reports whether a limit that is not recorded has refused the call.
func isElsewhere(ev *record.Event) bool {
	idle := false
	for i := range ev.Limits {
		switch ev.Limits[i].Verdict {
		case observe.VerdictRefused:
			return false
		case observe.VerdictNotCharged:
			idle = true
		}
	}
	return idle
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
