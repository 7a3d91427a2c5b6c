package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// events reports what happens in a limiter, or in the store of several, to the
// log and to the observers.
type events struct {
	log       *report.Lines
	observers []*Observer
	decisions bool    // an observer has a Decision function, or there is a witness
	keys      bool    // an observer has a KeyDenied function
	shares    bool    // an observer has a Threshold function
	witness   witness // or nil
	closed    atomic.Bool
}

// newEvents returns events for loggers, of which nil stands for [slog.Default].
func newEvents(loggers ...*slog.Logger) *events {
	e := new(events)
	e.log = &report.Lines{Log: report.Log{Loggers: loggers, Panicked: e.panicEvent}}
	return e
}

// observe adds an observer. A nil one is passed over.
func (e *events) observe(o *Observer) {
	if o != nil {
		e.observers = append(e.observers, o)
		e.decisions = e.decisions || o.Decision != nil
		e.keys = e.keys || o.KeyDenied != nil
		e.shares = e.shares || o.Threshold != nil
	}
}

// attached tells the observers which limiter has them.
func (e *events) attached(l *Limiter) {
	for _, o := range e.observers {
		notify(e, o.Attach, l)
	}
}

// detached tells the observers that their limiter has been closed, once.
func (e *events) detached(l *Limiter) {
	if !e.closed.Swap(true) {
		for _, o := range e.observers {
			notify(e, o.Detach, l)
		}
	}
}

// show has a store learn of decisions, if it is a witness.
func (e *events) show(store Store) {
	if w, ok := store.(witness); ok {
		e.witness, e.decisions = w, true
	}
}

// A witness is a store that learns the keys of decisions, and when they were charged,
// which no event for an [Observer] says: that of package ratetest. It is given copies,
// so that charges may be on the stack of their caller.
type witness interface {
	Decided(r *Rule, key string, at int64, ev DecisionEvent)
}

// decided reports each limit of a call that arrived at an instant. Unavailable says that
// nobody could decide it.
func (e *events) decided(ctx context.Context, charges []decide.Charge, tries []terms.Charge, arrived time.Duration, unavailable bool) {
	recorders := recordersOf(ctx)
	if recorders == nil && !e.decisions {
		return
	}
	admitted, latency := terms.Admitted(tries), clock.Now()-arrived
	for i := range charges {
		c := &tries[i]
		ev := newDecisionEvent(&charges[i], c)
		ev.Latency = latency
		switch {
		case unavailable:
			ev.Verdict = VerdictUnavailable
		case !c.Allowed && c.Shadow:
			ev.Verdict = VerdictShadowDenied
		case !c.Allowed:
			ev.Verdict = VerdictDenied
		case !admitted:
			ev.Verdict = VerdictNotCharged
		}
		e.decision(ctx, recorders, &charges[i], c.At, &ev)
	}
}

// unsatisfiable reports a shadow limit that could never admit the call, and is
// left out of its decision for that.
func (e *events) unsatisfiable(ctx context.Context, c *decide.Charge) {
	e.shadowDenied(ruleOf(c.Plan), c.Cost, &Decision{Limit: c.Plan.Capacity, RetryAfter: Never}, clock.Now())
	if recorders := recordersOf(ctx); recorders != nil || e.decisions {
		var denied terms.Charge
		denied.RetryAfter = Never
		ev := newDecisionEvent(c, &denied)
		ev.Verdict = VerdictShadowDenied
		e.decision(ctx, recorders, c, 0, &ev)
	}
}

// decision reports a decision. The event is copied for those who receive it, and nowhere
// else, since it is large.
func (e *events) decision(ctx context.Context, recorders *recorder, c *decide.Charge, at int64, ev *DecisionEvent) {
	if e.witness != nil {
		e.witness.Decided(ruleOf(c.Plan), string(c.Key), at, *ev)
	}
	for r := recorders; r != nil; r = r.outer {
		if r.record != nil {
			e.record(r, *ev)
		}
	}
	for _, o := range e.observers {
		if o.Decision != nil {
			e.notifyDecision(ctx, o, ev)
		}
	}
}

func (e *events) notifyDecision(ctx context.Context, o *Observer, ev *DecisionEvent) {
	defer e.contain("observer")
	o.Decision(ctx, *ev)
}

func (e *events) record(r *recorder, ev DecisionEvent) {
	defer e.contain("recorder")
	r.record(ev)
}

func (e *events) refused(r *recorder, refusal Refusal) {
	defer e.contain("recorder")
	r.refused(refusal)
}

func (e *events) failure(ctx context.Context, r *Rule, policy FailurePolicy, err error) {
	class := ClassOf(err)
	e.log.Undecided(r.told(), policy.String(), class.String(), err)
	e.fail(ctx, FailureEvent{Rule: r.Name, Class: class, Policy: policy, Err: err})
}

// unsettled reports that a decision could not be settled.
func (e *events) unsettled(ctx context.Context, r *Rule, err error) {
	class := ClassOf(err)
	e.log.Unsettled(r.told(), class.String(), err)
	e.fail(ctx, FailureEvent{Rule: r.Name, Class: class, Settling: true, Err: err})
}

// heldOff reports that the results of a call hold calls back, or that the store could not.
func (e *events) heldOff(ctx context.Context, r *Rule, d time.Duration, bounded bool, err error) {
	class := ClassOf(err)
	e.log.Held(r.told(), d, bounded, class.String(), err)
	if err != nil {
		e.fail(ctx, FailureEvent{Rule: r.Name, Class: class, Holding: true, Err: err})
	}
}

// shadowDenied reports a denial by a shadow limit, of a call that arrived at an instant.
func (e *events) shadowDenied(r *Rule, cost int64, d *Decision, arrived time.Duration) {
	if skipped, due := e.log.DenialDue(r.told(), arrived, 0); due {
		e.logDenial(r, cost, d, skipped)
	}
}

// deny reports the denial that a decision is, about a call that arrived at an instant, and
// returns its caller's error.
func (e *events) deny(r *Rule, cost int64, d *Decision, arrived time.Duration) error {
	b := errorBooks.Get().(*errorBook)
	if skipped, due := e.log.DenialDue(r.told(), arrived, b.stripe); due {
		e.logDenial(r, cost, d, skipped)
	}
	denial := b.issue()
	errorBooks.Put(b)
	denial.Rule, denial.Limit, denial.Remaining, denial.RetryAfter = d.Rule, d.Limit, d.Remaining, d.RetryAfter
	denial.Blocked, denial.Source, denial.rule = d.Blocked, d.Source, r
	return denial
}

func (e *events) logDenial(r *Rule, cost int64, d *Decision, skipped int64) {
	e.log.Denied(r.told(), skipped, report.Denial{
		Mode: r.Mode.String(), Source: d.Source.String(), Limit: d.Limit, Cost: cost, RetryAfter: d.RetryAfter, Blocked: d.Blocked,
	})
}

// told is how the log names the rule.
func (r *Rule) told() report.Rule {
	return report.Rule{Declared: unsafe.Pointer(r.declaration()), Name: r.Name}
}

// fail tells the observers what the store did not do.
func (e *events) fail(ctx context.Context, ev FailureEvent) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Failure, ev)
	}
}

// hidden reports that the client of a refused call was told of something else.
func (e *events) hidden(ctx context.Context, rule, route string) {
	e.log.Hidden(rule, route)
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Hidden, HiddenEvent{rule})
	}
}

// breaker reports that the circuit breaker of a node has opened or closed. The
// node is a server's address, or empty if there is one server or it is unknown.
func (e *events) breaker(node string, open bool) {
	e.log.Breaker(node, open)
	for _, o := range e.observers {
		notify(e, o.Breaker, BreakerEvent{open, node})
	}
}

func (e *events) override(ev OverrideEvent) {
	for _, o := range e.observers {
		notify(e, o.Override, ev)
	}
}

func (e *events) scale(ev ScaleEvent) {
	for _, o := range e.observers {
		notify(e, o.Scale, ev)
	}
}

func (e *events) memory(ev MemoryEvent) {
	for _, o := range e.observers {
		notify(e, o.Memory, ev)
	}
}

// notify calls a function of an observer, if there is one.
func notify[E any](e *events, listen func(E), ev E) {
	if listen != nil {
		defer e.contain("observer")
		listen(ev)
	}
}

// notifyWith is notify for a function that receives a call's context.
func notifyWith[E any](e *events, ctx context.Context, listen func(context.Context, E), ev E) {
	if listen != nil {
		defer e.contain("observer")
		listen(ctx, ev)
	}
}

// contain, deferred, ends a panic in a function that the limiter was given.
func (e *events) contain(in string) {
	if value := recover(); value != nil {
		e.panicked(in, value)
	}
}

// panicked reports a panic in a kind of function.
func (e *events) panicked(in string, value any) { e.log.Panic(in, value) }

func (e *events) panicEvent(in string) {
	for _, o := range e.observers {
		if o.Panic != nil {
			func() {
				defer func() { _ = recover() }() // it was called once
				o.Panic(PanicEvent{in})
			}()
		}
	}
}

// An observable store reports events of its own to the limiters on it.
type observable interface {
	attach(*events)
	detach(*events)
}

// nobody are the events of no limiter.
var nobody = newEvents()

// joined returns events that report to several limiters: once to each of their loggers, and
// once to each of their observers.
func joined(each []*events) *events {
	var loggers []*slog.Logger
	var observers []*Observer
	for _, e := range each {
		loggers, observers = append(loggers, e.log.Loggers...), append(observers, e.observers...)
	}
	all := newEvents(report.Distinct(loggers)...)
	for _, o := range report.Distinct(observers) {
		all.observe(o)
	}
	return all
}
