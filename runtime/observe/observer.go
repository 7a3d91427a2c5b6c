// Package observe is for who watches limiters: metrics, traces, logs and pages. [Observer] has a
// function for each kind of event, which runtime.WithObserver gives a limiter. [WithRecorder] gives
// middleware what happens under one context.
package observe

import "context"

// An Observer is a set of functions that a runtime.Limiter and its store call when something happens.
// Metrics, traces and alerts are built on it. A nil function costs nothing.
//
// The functions are called from many goroutines. Those that receive a context are called on the
// path of a call and with its context, so they must be quick. A panic in a function is contained
// and reported.
//
// The Rule of an event is the name of a rule. These are private: the keys of a [KeyRefusedEvent],
// a [ThresholdEvent], a [CallEvent] and a [SettlementEvent], and the Node of a [BreakerEvent]. The texts of
// errors in events hold neither a caller's key nor a server's address; their causes, by
// [errors.Unwrap], may. All else fits the labels of a metric: the names of rules come from the
// program, the other words from short lists.
type Observer struct {
	// runtime.New calls Attach with each limiter that has the observer, before it returns the limiter.
	// The first runtime.Limiter.Close calls Detach when it has ended. Metrics keep the limiter in
	// between, to read its rules.
	Attach, Detach func(Limiter)
	// Decision is called for every limit of a decided call.
	Decision func(context.Context, DecisionEvent)
	// KeyRefused is called for every key whose limit had no room. Keys hold what callers send: treat
	// them as private. The process cap has none.
	KeyRefused func(context.Context, KeyRefusedEvent)
	// Threshold is called when a key has used 80 and 100 percent of a rule with a Period, each
	// once a period over all processes. A goroutine of the limiter does so, with one event after
	// the other.
	Threshold func(ThresholdEvent)
	// Call and Settlement are for recordings: what was asked of which key. Both have the keys of
	// callers, which are private.
	Call       func(context.Context, CallEvent)
	Settlement func(context.Context, SettlementEvent)
	// The others are called with each event of their kind.
	Failure     func(context.Context, FailureEvent)
	Hidden      func(context.Context, HiddenEvent)
	Wait        func(context.Context, WaitEvent)
	PeerRefused func(context.Context, PeerRefusedEvent)
	Hold        func(context.Context, HoldEvent)
	Breaker     func(BreakerEvent)
	Override    func(OverrideEvent)
	Scale       func(ScaleEvent)
	Memory      func(MemoryEvent)
	Panic       func(PanicEvent)
}
