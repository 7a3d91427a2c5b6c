package ratefield

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// The most that is kept of one call. A call meets few rules; a stream that lasts for
// days must not grow.
const (
	maxLimits   = 16
	maxRefusals = 8
)

// A Record is what limiters have decided about one call of a client. It is safe for
// concurrent use. Its zero value has nothing.
type Record struct {
	// Holds, if not nil, are told for how long the call has held permits.
	Holds *Holds

	mu       sync.Mutex
	limits   []State
	room     [2]State // of limits, at first
	refusals []observe.Refusal
	one      [1]observe.Refusal // of refusals, at first
	paused   bool
}

// Begin returns a context under which limiters report to the record.
func (r *Record) Begin(ctx context.Context) context.Context {
	return observe.WithRefusalRecorder(observe.WithRecorder(ctx, r.Decided), r.refused)
}

// Pause ends the record: what is decided later is left to another one, so that no limit
// is told twice.
func (r *Record) Pause() {
	r.mu.Lock()
	r.paused = true
	r.mu.Unlock()
}

// End tells the record that the call has ended, and gives its permits back.
func (r *Record) End() {
	if r.Holds == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.limits {
		if l := &r.limits[i]; !l.since.IsZero() {
			r.Holds.ended(l.Rule, time.Since(l.since))
			l.since = time.Time{}
		}
	}
}

// Decided records a decision about one limit.
func (r *Record) Decided(ev observe.DecisionEvent) {
	l, ok := StateOf(&ev)
	if !ok {
		return
	}
	if l.flight {
		if ev.Verdict == observe.VerdictAdmitted && l.Counted {
			l.since = time.Now()
		} else if l.Refused {
			l.RetryAfter = r.Holds.orNone().retryAfter(l.Rule, l.RetryAfter)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused {
		return
	}
	if r.limits == nil {
		r.limits = r.room[:0]
	}
	for i := range r.limits {
		if o := &r.limits[i]; o.Rule == l.Rule && o.Outgoing == l.Outgoing {
			if l.since.IsZero() {
				l.since = o.since // which is still held
			}
			if tighter(&l, o) {
				*o = l
			}
			return
		}
	}
	if len(r.limits) < maxLimits {
		r.limits = append(r.limits, l)
	}
}

// tighter reports whether l says more about the next call than o, an earlier decision
// about the same rule, does.
func tighter(l, o *State) bool {
	if l.Counted != o.Counted {
		return l.Counted || l.Refused
	}
	return l.Left <= o.Left
}

// refused records a refusal.
func (r *Record) refused(refusal observe.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused {
		return
	}
	if r.refusals == nil {
		r.refusals = r.one[:0]
	}
	if len(r.refusals) == maxRefusals {
		r.refusals = append(r.refusals[:0], r.refusals[1:]...)
	}
	r.refusals = append(r.refusals, refusal)
}

// Limits appends the limits that the call has met, each once, in their order.
func (r *Record) Limits(to []State) []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(to, r.limits...)
}

// Cause returns the limiter's own error for one that is or wraps what the program has
// made of it, or nil. The latest refusal counts if the program makes the same error of
// several.
func (r *Record) Cause(err error) (own error) {
	defer func() { _ = recover() }() // errors that cannot be compared are not the same
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.refusals) - 1; i >= 0; i-- {
		if errors.Is(err, r.refusals[i].Returned) {
			return r.refusals[i].Err
		}
	}
	return nil
}

// RetryAfter returns the time to tell the client of a refused call: that of the error
// or, of a limit on calls in flight, what [Holds] tell. r may be nil.
func (r *Record) RetryAfter(limited *runtime.LimitedError) time.Duration {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range r.limits {
			if l := &r.limits[i]; l.flight && l.Refused && l.Rule == limited.Rule && l.Outgoing == limited.Outgoing() {
				return l.RetryAfter
			}
		}
	}
	if !algorithm.RowOf(limited.Algorithm()).Is(algorithm.Lends) {
		return limited.RetryAfter
	}
	var holds *Holds
	if r != nil {
		holds = r.Holds
	}
	return holds.orNone().retryAfter(limited.Rule, limited.RetryAfter)
}

var noHolds Holds

func (h *Holds) orNone() *Holds {
	if h == nil {
		return &noHolds
	}
	return h
}
