package replay

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// Bounds of what a simulation keeps.
const (
	maxKeys  = 1 << 20
	maxHeld  = 1 << 20 // charges that may be settled, renewed or waited for
	maxMaxes = 1 << 14 // of the rules' terms
	polls    = 64      // how often a call that waits for permits is tried, at least
)

// A Change says what becomes of a rule, and of the max that a call had, or reports false if the
// limit is gone.
type Change func(s record.RuleState, max int64) (r *runtime.Rule, now int64, on bool)

// same is the change that changes nothing.
func same(s record.RuleState, max int64) (*runtime.Rule, int64, bool) { return s.Rule, max, true }

// A simulation is a store that calls are replayed on, at their times and under its rules.
type simulation struct {
	decider  *rawstore.Decider
	change   Change
	exact    bool // calls are decided when they were, and nobody waits
	names    *record.Names
	groups   map[string]uint32 // of rules with one prefix, whose keys are one
	terms    map[termsKey]terms
	last     []lastTerms // by rule: most have one max
	held     map[heldKey]*held
	agenda   agenda[task]
	requests []rawstore.Request
	parts    []byte
	run      *run
	holds    map[*runtime.Rule]*mean // how long permits were held, by the rule in the record
	full     bool                    // there was no room to keep more charges
	waiting  int                     // calls that are to be tried again
	early    map[heldKey][]ending    // settlements that came while some were
}

// An ending is a settlement of a call that waits here for longer than it did when it was recorded.
type ending struct{ at, settled int64 }

type termsKey struct {
	rule uint32
	max  int64
}

// lastTerms are the terms that were asked for last of a rule.
type lastTerms struct {
	max   int64
	known bool
	terms terms
}

// terms are what a rule of the record means in the simulation at a max.
type terms struct {
	rawstore.Terms
	rule  *runtime.Rule
	group uint32
	on    bool
	keeps bool // its charges may be settled, or lapse
}

// A heldKey is what a settlement finds a charge by.
type heldKey struct {
	group, caller, share uint32
	charged              int64 // as recorded
}

// mean is the mean of durations.
type mean struct{ sum, n int64 }

func newSimulation(r *run, change Change, exact bool) *simulation {
	d := rawstore.NewDecider(maxKeys)
	d.Defers = !exact
	return &simulation{
		decider: d, change: change, exact: exact, names: r.files.Names, groups: map[string]uint32{},
		terms: map[termsKey]terms{}, held: map[heldKey]*held{}, early: map[heldKey][]ending{}, run: r, holds: map[*runtime.Rule]*mean{},
	}
}

// termsOf returns what a rule of the record means at a max.
func (sim *simulation) termsOf(rule uint32, max int64) (terms, error) {
	for int(rule) >= len(sim.last) {
		sim.last = append(sim.last, lastTerms{})
	}
	last := &sim.last[rule]
	if !last.known || last.max != max {
		t, err := sim.newTerms(rule, max)
		if err != nil {
			return t, err
		}
		*last = lastTerms{max, true, t}
	}
	return last.terms, nil
}

// newTerms is termsOf for another max than the last time.
func (sim *simulation) newTerms(rule uint32, max int64) (terms, error) {
	k := termsKey{rule, max}
	if t, known := sim.terms[k]; known {
		return t, nil
	}
	if len(sim.terms) == maxMaxes {
		clear(sim.terms)
	}
	s := sim.names.Rules[rule]
	var t terms
	var now int64
	if t.rule, now, t.on = sim.change(s, max); t.on {
		prefix := spec.Prefix(s.Rule.Prefix, s.Rule.Name)
		group, known := sim.groups[prefix]
		if !known {
			group = uint32(len(sim.groups))
			sim.groups[prefix] = group
		}
		t.group = group
		var err error
		t.Terms, err = rawstore.NewTerms(t.rule, now, string(binary.LittleEndian.AppendUint32(nil, group)))
		if err != nil {
			return t, fmt.Errorf("%s at max=%d: %w", s.Rule.Name, now, err)
		}
		if t.rule.Lapses() && !s.Rule.Lapses() && !sim.run.settled[s.Declared.Name] {
			return t, fmt.Errorf("%s: permits and reservations last as long as a call, and this record does not say how long calls took: deploy the change with mode=shadow, and record that", s.Rule.Name)
		}
		if t.Divided() && !s.Divides() {
			return t, fmt.Errorf("%s: shares divide it, and this record does not say of which share calls are: deploy the change with mode=shadow, and record that", s.Rule.Name)
		}
		t.keeps = t.Lasts() > 0 || sim.run.settled[s.Declared.Name]
	}
	sim.terms[k] = t
	return t, nil
}

// A job is a call on its way through the simulations.
type job struct {
	ev       record.Event
	outcomes [2]outcome // in which simulations it is decided
	open     int
	same     bool // nothing that it depends on is changed
}

// An outcome is what became of a call in a simulation.
type outcome struct {
	verdicts  [rule.MaxLimits]observe.Verdict
	removed   [rule.MaxLimits]bool // the limit is not there
	refused   bool
	elsewhere bool // a limit that is not recorded has refused it, or no store has decided
	delayed   time.Duration
	decided   int64
	joined    []rawstore.Request // of a call that waits for its turn, at which some are charged; or nil
}

// fill fills in the requests of a call, and which of its limits each is for.
func (sim *simulation) fill(ev *record.Event, o *outcome) (asked [rule.MaxLimits]int, err error) {
	sim.requests, sim.parts = sim.requests[:0], sim.parts[:0]
	for _, shadows := range []bool{false, true} { // these stand behind the others
		for i := range ev.Limits {
			l := &ev.Limits[i]
			t, err := sim.termsOf(l.Rule, l.Max)
			if err != nil {
				return asked, err
			}
			o.removed[i] = !t.on
			if !t.on || t.Shadow() != shadows {
				continue
			}
			at := len(sim.parts)
			c := &sim.names.Callers[l.Caller]
			sim.parts = append(sim.parts, c[:]...)
			asked[len(sim.requests)] = i
			sim.requests = append(sim.requests, rawstore.Request{Terms: t.Terms, Parts: sim.parts[at:len(sim.parts):len(sim.parts)], Cost: l.Cost,
				Wait: time.Duration(l.Wait) * time.Microsecond})
			if t.Divided() {
				a := &sim.requests[len(sim.requests)-1]
				a.Tenant, a.Weight = sim.names.Callers[l.Share][:], max(1, l.Weight)
			}
		}
	}
	return asked, nil
}

// decide decides a call now. It returns for how long it waits until it is tried again, or below 0
// if it is decided.
func (sim *simulation) decide(j *job, n int, arrived int64) (again time.Duration, err error) {
	ev, o := &j.ev, &j.outcomes[n]
	asked, err := sim.fill(ev, o)
	if err != nil {
		return -1, err
	}
	waited := time.Duration(sim.decider.Now-arrived) * time.Microsecond
	for k := range sim.requests {
		a := &sim.requests[k]
		if !sim.exact {
			l := &ev.Limits[asked[k]]
			t, _ := sim.termsOf(l.Rule, l.Max)
			whole := t.rule.Wait
			if recorded := sim.names.Rules[l.Rule].Rule.Wait; recorded > 0 && t.rule.Wait == recorded {
				whole = time.Duration(l.Wait+ev.Waited) * time.Microsecond // its context may have ended sooner
			}
			a.Wait = max(0, whole-waited)
		}
	}
	wait := time.Duration(0)
	if o.joined != nil {
		for k := range sim.requests {
			sim.requests[k].Result, sim.requests[k].Due = o.joined[k].Result, o.joined[k].Due
		}
		if wait = sim.decider.Turn(sim.requests); wait > 0 {
			o.joined = nil
			return sim.decide(j, n, arrived)
		}
	} else if len(sim.requests) > 0 {
		wait = sim.decider.Take(sim.requests)
	}
	admitted := true
	for k := range sim.requests {
		o.verdicts[asked[k]] = sim.requests[k].Verdict
		admitted = admitted && sim.requests[k].Verdict != observe.VerdictRefused
	}
	if !admitted && wait >= 0 && !sim.exact {
		if wait == 0 { // for permits, of which nobody knows when they come back
			wait = max(time.Millisecond, sim.requests[0].Wait/polls)
		}
		return wait, nil
	}
	if admitted && slices.ContainsFunc(sim.requests, func(r rawstore.Request) bool { return r.Due }) {
		o.joined = slices.Clone(sim.requests)
		return wait, nil
	}
	o.refused, o.decided = !admitted, sim.decider.Now
	if admitted {
		o.delayed = waited + max(0, wait)
		sim.keep(ev, asked, max(0, sim.decider.Now-ev.Time))
	}
	return -1, nil
}
