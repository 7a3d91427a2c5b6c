package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/testkit/admission"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A fate is what became of a call.
type fate uint8

const (
	admitted  fate = iota
	refused        // by a limit
	undecided      // because the store gave no answer
	strange        // by an error that no call should see
)

func fateOf(err error) fate {
	if err == nil {
		return admitted
	}
	if errors.Is(err, runtime.ErrLimited) {
		return refused
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		return undecided
	}
	return strange
}

// A record is one call.
type record struct {
	key        int
	begin, end time.Duration // since the start of the run
	source     rule.Source
	fate       fate
}

// Seen is what the callers saw of a fault through one failure policy.
type Seen struct {
	Policy runtime.FailurePolicy
	// Calls counts the calls that ended after the fault had begun and began
	// before it had ended: all of them were answered. The counts below it are
	// of these calls.
	Calls int
	// P50, P99 and Max say how long they took.
	P50, P99, Max time.Duration
	// Store, Local and Failure count them by who decided.
	Store, Local, Failure int
	// Admitted, Refused, Undecided and Strange count by what became of those that
	// the store did not decide: Undecided is runtime.ErrUnavailable, and Strange
	// an error that nobody should see.
	Admitted, Refused, Undecided, Strange int
	// Classes counts the failures of the whole run by their error class.
	Classes map[string]int
	// Healthy is the most that the store admitted on one key in any window,
	// Alone that the processes by themselves did, and Worst that all did.
	Healthy, Alone, Worst int64
	// HealthyBound is max*(1+F) and AloneBound P*local, which are the most that
	// Healthy and Alone may be. Bound is their sum and that for Worst. The last
	// two are -1 for an open policy, which admits without bound.
	HealthyBound, AloneBound, Bound int64
	// Back is the time from the end of the fault until no call was decided by
	// the policy any more, for a window at least, and Enforced that until the
	// store had refused a call on every key. They are -1 if that did not
	// happen.
	Back, Enforced time.Duration
}

func (v *view) seen(fault Fault, t times) Seen {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Seen{
		Policy: v.policy, Classes: v.classes,
		HealthyBound: perWindow * (1 + fault.Failovers),
	}
	switch v.policy {
	case runtime.FailOpen:
		s.AloneBound, s.Bound = -1, -1
	case runtime.FailLocal:
		s.AloneBound = processes * (perWindow / processes)
		fallthrough
	default:
		s.Bound = s.HealthyBound + s.AloneBound
	}
	s.Alone = worst(v.records, func(r *record) bool { return r.source != rule.SourceStore })
	s.Healthy = worst(v.records, func(r *record) bool { return r.source == rule.SourceStore })
	s.Worst = worst(v.records, func(*record) bool { return true })

	slices.SortFunc(v.records, func(a, b record) int { return int(a.end - b.end) })
	back := v.back(t)
	s.Back, s.Enforced = durationFrom(back, t.over), durationFrom(v.enforced(back), t.over)
	until := t.end
	if fault.Heals && back < 0 {
		until = t.stop
	} else if fault.Heals {
		until = max(until, back)
	}
	var took []time.Duration
	for i := range v.records {
		if r := &v.records[i]; r.end > t.begin && r.begin <= until {
			s.count(r)
			took = append(took, r.end-r.begin)
		}
	}
	s.P50, s.P99, s.Max = quantiles(took)
	return s
}

func (s *Seen) count(r *record) {
	s.Calls++
	switch r.source {
	case rule.SourceStore:
		s.Store++
		return
	case rule.SourceLocal:
		s.Local++
	default:
		s.Failure++
	}
	switch r.fate {
	case admitted:
		s.Admitted++
	case refused:
		s.Refused++
	case undecided:
		s.Undecided++
	default:
		s.Strange++
	}
}

// back returns when the policy had decided its last call before a while
// without any, or -1. Records are in the order of their ends.
func (v *view) back(t times) time.Duration {
	at := t.over
	for i := range v.records {
		r := &v.records[i]
		if r.end > at+calm && r.begin > at {
			break
		}
		if r.end > at && r.source != rule.SourceStore {
			at = r.end
		}
	}
	if at+calm > t.stop {
		return -1
	}
	return at
}

// enforced returns when, after back, the store had refused a call on every key,
// or -1.
func (v *view) enforced(back time.Duration) time.Duration {
	missing := len(v.limits)
	found := make([]bool, missing)
	for i := range v.records {
		r := &v.records[i]
		if r.end >= back && r.source == rule.SourceStore && r.fate == refused && !found[r.key] {
			found[r.key] = true
			if missing--; missing == 0 && back >= 0 {
				return r.end
			}
		}
	}
	return -1
}

func durationFrom(at, from time.Duration) time.Duration {
	if at < 0 {
		return -1
	}
	return at - from
}

// worst returns the most calls of one key that were admitted for certain in
// one window: that began and ended in it, by whomever picks admits.
func worst(records []record, pick func(*record) bool) (most int64) {
	byKey := map[int][]admission.Call{}
	for i := range records {
		if r := &records[i]; r.fate == admitted && pick(r) {
			byKey[r.key] = append(byKey[r.key], admission.Call{Begin: int64(r.begin), End: int64(r.end), Cost: 1})
		}
	}
	for _, calls := range byKey {
		used, _ := admission.Fullest(calls, int64(window), 0)
		most = max(most, used)
	}
	return most
}

func quantiles(took []time.Duration) (p50, p99, max time.Duration) {
	if len(took) == 0 {
		return 0, 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}

// Complaint says what is wrong with what was seen, if something is: Wrong or Late.
func (s *Seen) Complaint() string { return cmp.Or(s.Wrong(), s.Late()) }

// Wrong says what must not be seen on any machine: more was admitted than the formula
// allows, or an error that nobody should see.
func (s *Seen) Wrong() string {
	if s.Healthy > s.HealthyBound {
		return fmt.Sprintf("the store admitted %d in a window, which holds %d", s.Healthy, s.HealthyBound)
	}
	if s.AloneBound >= 0 && s.Alone > s.AloneBound {
		return fmt.Sprintf("without the store %d were admitted in a window, which then holds %d", s.Alone, s.AloneBound)
	}
	if s.Bound >= 0 && s.Worst > s.Bound {
		return fmt.Sprintf("%d were admitted in a window, which holds %d", s.Worst, s.Bound)
	}
	if s.Strange > 0 {
		return fmt.Sprintf("%d calls saw an error that is none of the limiter's", s.Strange)
	}
	return ""
}

// Late says what took too long: limits that are not enforced again.
func (s *Seen) Late() string {
	if s.Back < 0 {
		return "the store does not decide again"
	}
	if s.Enforced < 0 {
		return "limits are not enforced again"
	}
	return ""
}
