package raterpc

import (
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// maxRules bounds the rules that a call remembers. A call meets few; a stream that
// lasts for days must not grow.
const maxRules = 16

// A record is what limiters have decided in a call: of every rule the newest event,
// in the order in which the rules were met.
type record struct {
	mu     sync.Mutex
	events []runtime.DecisionEvent
	last   runtime.Verdict // of the newest decision: Admitted, Denied or Unavailable
}

// add adds an event. It is a recorder, see [runtime.WithRecorder].
func (r *record) add(e runtime.DecisionEvent) {
	if e.Mode == runtime.Shadow {
		return // clients do not meet this limit
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Verdict {
	case runtime.Admitted, runtime.Denied, runtime.Unavailable:
		r.last = e.Verdict
	}
	i := slices.IndexFunc(r.events, func(old runtime.DecisionEvent) bool { return old.Rule == e.Rule })
	switch {
	case i >= 0:
		r.events[i] = e
	case len(r.events) < maxRules:
		r.events = append(r.events, e)
	}
}

// all returns a copy of the events.
func (r *record) all() []runtime.DecisionEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// verdict returns whether the newest decision admitted, denied or could not decide.
func (r *record) verdict() runtime.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// denied returns the events of the rules that deny, the longest RetryAfter first.
func (r *record) denied() []runtime.DecisionEvent {
	events := slices.DeleteFunc(r.all(), func(e runtime.DecisionEvent) bool { return e.Verdict != runtime.Denied })
	slices.SortStableFunc(events, func(a, b runtime.DecisionEvent) int {
		return int(min(max(b.RetryAfter-a.RetryAfter, -1), 1))
	})
	return events
}
