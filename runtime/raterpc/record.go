package raterpc

import (
	"errors"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// The most that is remembered of a call. A call meets few rules; a stream that lasts
// for days must not grow.
const (
	maxRules    = 16
	maxRefusals = 8
)

// A record is what limiters have decided in a call.
type record struct {
	mu sync.Mutex
	// events has the newest event of every rule, in the order in which the rules
	// were met.
	events []runtime.DecisionEvent
	// refusals are the newest that an application has given another form.
	refusals []runtime.Refusal
}

// add adds an event. It is a recorder, see [runtime.WithRecorder].
func (r *record) add(e runtime.DecisionEvent) {
	if !e.Mode.Denies() {
		return // clients do not meet this limit
	}
	r.mu.Lock()
	defer r.mu.Unlock()
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

// refuse adds a refusal, see [runtime.WithRefusals].
func (r *record) refuse(refusal runtime.Refusal) {
	if refusal.Err == refusal.Returned {
		return // the error tells by itself
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refusals) == maxRefusals {
		r.refusals = slices.Delete(r.refusals, 0, 1)
	}
	r.refusals = append(r.refusals, refusal)
}

// cause returns the limiter's own error for one that is or wraps what an application
// has made of it, or nil. The newest counts if the application makes the same error of
// several.
func (r *record) cause(err error) (own error) {
	defer func() { _ = recover() }() // errors that cannot be compared are not the same
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, refusal := range slices.Backward(r.refusals) {
		if errors.Is(err, refusal.Returned) {
			return refusal.Err
		}
	}
	return nil
}

// denied returns the events of the rules that deny, the longest RetryAfter first.
func (r *record) denied() []runtime.DecisionEvent {
	events := slices.DeleteFunc(r.all(), func(e runtime.DecisionEvent) bool { return e.Verdict != runtime.Denied })
	slices.SortStableFunc(events, func(a, b runtime.DecisionEvent) int {
		return int(min(max(b.RetryAfter-a.RetryAfter, -1), 1))
	})
	return events
}
