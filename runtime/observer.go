package runtime

import "time"

// An Observer is told what happens in a [Limiter] and its store: metrics,
// traces and alerts are built on it. A nil function costs nothing.
//
// The functions are called from many goroutines, Decision and Failure on the
// path of the calls they speak of, so they must be quick. If one panics the
// limiter goes on and reports that. No event holds a key, and what they hold
// fits the labels of a metric: the names of rules come from the program, all
// else has a few values.
type Observer struct {
	// Decision is called for every limit of a call that was decided.
	Decision func(DecisionEvent)
	// Failure is called for every limit that the store did not decide, and for
	// every key that could not be built.
	Failure func(FailureEvent)
	// Breaker is called when a store is no longer asked, because it gave no
	// answer, and when it is asked again.
	Breaker func(BreakerEvent)
	// Override is called when other overrides come into force, and when some
	// are refused.
	Override func(OverrideEvent)
	// Scale is called when the factor of an adaptive rule changes.
	Scale func(ScaleEvent)
	// Memory is called for every reading of Redis's memory.
	Memory func(MemoryEvent)
	// Panic is called when the limiter has stopped a panic in a function that
	// it was given.
	Panic func(PanicEvent)
}

// WithObserver has o told what happens. It must not be changed any more.
func WithObserver(o *Observer) Option {
	return func(l *Limiter) { l.events.observer = o }
}

// A DecisionEvent says what was decided about one limit of a call.
type DecisionEvent struct {
	Rule    string
	Verdict Verdict
	Source  Source
	Cost    int64
	// Latency is how long deciding the call took, without any waiting for its
	// turn.
	Latency time.Duration
}

// A Verdict is what became of one limit of a call.
type Verdict uint8

const (
	// Admitted: the limit had room, or a failure policy let the call pass.
	Admitted Verdict = iota
	// Denied: the limit had no room.
	Denied
	// ShadowDenied: the limit had no room, but only counts.
	ShadowDenied
	// NotCharged: the limit had room, another of the call had none.
	NotCharged
	// Unavailable: nothing could decide, and a rule of the call fails closed.
	Unavailable
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case Denied:
		return "denied"
	case ShadowDenied:
		return "shadow_denied"
	case NotCharged:
		return "not_charged"
	case Unavailable:
		return "unavailable"
	}
	return "unknown"
}

// A FailureEvent says why a limit was not decided by the store, and which
// policy decides instead.
type FailureEvent struct {
	Rule   string
	Class  ErrorClass
	Policy FailurePolicy
}

// A BreakerEvent says whether the store is left alone from now on.
type BreakerEvent struct{ Open bool }

// An OverrideEvent says that other overrides are in force or, if Err is not
// nil, why they were refused so that the last good ones stay. An error that
// stays the same is told once a minute.
type OverrideEvent struct {
	// Rules is how many rules the overrides in force are for.
	Rules int
	// Enabled is false if they switch all limits off.
	Enabled bool
	Err     error
}

// A ScaleEvent says by what the max of an adaptive rule is multiplied now.
type ScaleEvent struct {
	Rule   string
	Factor float64
}

// A MemoryEvent is a reading of the memory of one Redis, in bytes.
type MemoryEvent struct {
	// Used is what Redis uses, Max what it may: its maxmemory or, without one,
	// the memory of its machine.
	Used, Max int64
	// High reports that Used is above the threshold of the watch.
	High bool
}

// A PanicEvent says which kind of function has panicked.
type PanicEvent struct{ In string }
