// Package replay asks what recorded calls would have been answered under other rules. It decides
// them by the engine of a limiter, in memory and at the times that they had.
package replay

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
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

// maxKept is how many events of some rules are kept in memory, to be replayed again and again.
const maxKept = 1_000_000

// Records are what has been recorded, to be replayed any number of times.
type Records struct {
	files   *record.Files
	survey  *record.Survey
	maxHeap uint64
	parts   []uint32 // of which part each rule is: no call is limited by rules of two
	only    []uint32 // the part that is replayed; nil: all
	kept    []record.Event
}

// Open reads all of some files once. The error is [ErrNewer], [ErrNone], [ErrEmpty], of reading, or says
// that there is more than can be read together.
func Open(files ...io.ReaderAt) (*Records, error) {
	f, err := record.Open(files...)
	if err != nil {
		return nil, err
	}
	s, err := f.Survey()
	if err != nil {
		return nil, err
	}
	if s.Calls == 0 && f.Damage.Unknown > 0 {
		return nil, ErrNewer
	}
	if len(f.Recordings) == 0 && f.Damage.Skipped+int64(f.Damage.Corrupt+f.Damage.Truncated) > 0 {
		return nil, ErrNone
	}
	if s.Calls == 0 {
		return nil, ErrEmpty
	}
	return &Records{files: f, survey: s, maxHeap: maxHeap, parts: partsOf(f, s)}, nil
}

// partsOf returns of which part each rule is. Rules that stand together in a call, or whose keys start
// alike, are of one.
func partsOf(f *record.Files, s *record.Survey) []uint32 {
	parts := make([]uint32, len(f.Names.Rules))
	first := map[string]uint32{} // by name and by prefix
	for i := range parts {
		parts[i] = uint32(i)
	}
	join := func(a, b uint32) {
		a, b = parts[a], parts[b]
		for i := range parts {
			if parts[i] == b {
				parts[i] = a
			}
		}
	}
	for i, state := range f.Names.Rules {
		for _, as := range []string{"name " + state.Declared.Name, "prefix " + prefixOf(state.Rule)} {
			if other, is := first[as]; is && parts[other] != parts[i] {
				join(other, uint32(i))
			} else if !is {
				first[as] = uint32(i)
			}
		}
	}
	for pair := range s.Together {
		if parts[pair[0]] != parts[pair[1]] {
			join(pair[0], pair[1])
		}
	}
	return parts
}

// prefixOf returns what the keys of a rule start with.
func prefixOf(r *runtime.Rule) string {
	if r.Prefix == "" {
		return "rate_limit:" + r.Name
	}
	return r.Prefix
}

// Select returns records of the calls that a rule limits, and of the calls on which those may depend. It
// reads the files once.
func (rs *Records) Select(rule string) (*Records, error) {
	of := *rs
	for i, state := range rs.files.Names.Rules {
		if state.Declared.Name == rule {
			of.only = []uint32{rs.parts[i]}
		}
	}
	if of.only == nil {
		return nil, fmt.Errorf("the records have no call of %q%s", rule, nearest.Hint(rule, rs.Rules()))
	}
	s := *rs.survey
	s.Waited, of.survey = 0, &s
	keeps := true
	err := of.each(func(ev *record.Event) error {
		s.Waited = max(s.Waited, ev.Waited)
		keeps = keeps && len(of.kept) < maxKept
		if keeps {
			of.kept = append(of.kept, *ev)
			of.kept[len(of.kept)-1].Limits = slices.Clone(ev.Limits)
		}
		return nil
	})
	if !keeps {
		of.kept = nil
	}
	return &of, err
}

// each calls visit with the events that are to be replayed.
func (rs *Records) each(visit func(*record.Event) error) error {
	for i := range rs.kept {
		if err := visit(&rs.kept[i]); err != nil {
			return err
		}
	}
	if rs.kept != nil {
		return nil
	}
	return rs.files.Events(func(ev *record.Event) error {
		if len(rs.files.Names.Rules) > len(rs.parts) {
			return errors.New("the files have changed while they were read")
		}
		if len(ev.Limits) == 0 || !rs.has(ev.Limits[0].Rule) {
			return nil
		}
		return visit(ev)
	})
}

// has reports whether a rule is one of the part that is replayed.
func (rs *Records) has(rule uint32) bool { return rs.only == nil || rs.parts[rule] == rs.only[0] }

// Rules returns the names of the rules in the records.
func (rs *Records) Rules() (names []string) {
	for _, s := range rs.files.Names.Rules {
		names = append(names, s.Declared.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

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
