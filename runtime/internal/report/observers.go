package report

import (
	"context"
	"log/slog"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Events reports what happens in a limiter, or in the store of several, to the log and to the
// observers.
type Events struct {
	Log       *Lines
	Observers []*observe.Observer
	Witness   Witness // or nil
	// Each says whether an observer has a function for such events. Decisions is also true if there is a
	// witness.
	Decisions, Keys, Shares, Calls, Settled bool

	shares background.Queue[terms.Reached]
}

// A Witness is a store that learns the keys of decisions, and when they were charged, which no
// event for an [observe.Observer] says: that of package ratetest. It is given copies, so that charges
// may be on the stack of their caller.
type Witness interface {
	Decided(r *rule.Rule, key string, at int64, ev observe.DecisionEvent)
}

// NewEvents returns events for lists of findings, and for loggers, of which nil stands for
// [slog.Default].
func NewEvents(lists []*findings.List, loggers ...*slog.Logger) *Events {
	e := new(Events)
	e.Log = &Lines{Log: Log{Loggers: loggers, Panicked: e.panicked}, Lists: lists}
	e.shares.Do = e.tellShares
	return e
}

// Close ends the goroutine that tells of shares.
func (e *Events) Close() { e.shares.Close() }

// Observe adds an observer. A nil one is passed over.
func (e *Events) Observe(o *observe.Observer) {
	if o != nil {
		e.Observers = append(e.Observers, o)
		e.Decisions = e.Decisions || o.Decision != nil
		e.Calls, e.Settled = e.Calls || o.Call != nil, e.Settled || o.Settlement != nil
		e.Keys = e.Keys || o.KeyRefused != nil
		e.Shares = e.Shares || o.Threshold != nil
	}
}

// Failure reports that a policy decides a limit, and why the store does not.
func (e *Events) Failure(ctx context.Context, p *plan.Plan, policy rule.FailurePolicy, class observe.ErrorClass, err error) {
	e.Log.Undecided(p.Declared, policy.String(), class.String(), err)
	e.failure(ctx, observe.FailureEvent{Rule: p.Name, Class: class, Policy: policy, Err: err})
}

// Unsettled reports that a decision could not be settled, by a rule as it was declared.
func (e *Events) Unsettled(ctx context.Context, r *rule.Rule, class observe.ErrorClass, err error) {
	e.Log.Unsettled(r, class.String(), err)
	e.failure(ctx, observe.FailureEvent{Rule: r.Name, Class: class, Settling: true, Err: err})
}

// HeldOff reports that the results of a call hold calls back, or that the store could not.
func (e *Events) HeldOff(ctx context.Context, r *rule.Rule, d time.Duration, bounded bool, class observe.ErrorClass, err error) {
	e.Log.Held(r, d, bounded, class.String(), err)
	if err != nil {
		e.failure(ctx, observe.FailureEvent{Rule: r.Name, Class: class, Holding: true, Err: err})
	}
}

// failure tells the observers what the store did not do.
func (e *Events) failure(ctx context.Context, ev observe.FailureEvent) {
	for _, o := range e.Observers {
		NotifyWith(e, ctx, o.Failure, ev)
	}
}

// Waits tells of a call that waits.
func (e *Events) Waits(ctx context.Context, ev observe.WaitEvent) {
	for _, o := range e.Observers {
		NotifyWith(e, ctx, o.Wait, ev)
	}
}

// Breaker reports that the circuit breaker of a node has opened or closed. The node is a
// server's address, or empty if there is one server or it is unknown.
func (e *Events) Breaker(node string, open bool) {
	e.Log.Breaker(node, open)
	for _, o := range e.Observers {
		Notify(e, "observer", o.Breaker, observe.BreakerEvent{Open: open, Node: node})
	}
}

// Notify calls listen, unless it is nil. A panic is reported as one of a kind of function.
func Notify[E any](e *Events, kind string, listen func(E), ev E) {
	if listen != nil {
		defer e.Contain(kind)
		listen(ev)
	}
}

// NotifyWith is [Notify] for a function of an observer that receives a call's context.
func NotifyWith[E any](e *Events, ctx context.Context, listen func(context.Context, E), ev E) {
	if listen != nil {
		defer e.Contain("observer")
		listen(ctx, ev)
	}
}

// Contain, deferred, ends a panic in a function that the limiter was given.
func (e *Events) Contain(in string) {
	if value := recover(); value != nil {
		e.Log.Panic(in, value)
	}
}

func (e *Events) panicked(in string) {
	for _, o := range e.Observers {
		if o.Panic != nil {
			func() {
				defer func() { _ = recover() }() // it was called once
				o.Panic(observe.PanicEvent{In: in})
			}()
		}
	}
}

// ShareListener returns the function that receives shares, or nil if no observer wants them.
func (e *Events) ShareListener() func(terms.Reached) {
	if !e.Shares {
		return nil
	}
	return e.shares.Add
}

func (e *Events) tellShares(all []terms.Reached) {
	for _, r := range all {
		for _, o := range e.Observers {
			Notify(e, "observer", o.Threshold, observe.ThresholdEvent(r))
		}
	}
}
