package runtime

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// events reports what happens in a limiter, or in the store of several, to the
// log and to the observers.
type events struct {
	log       *limitedLog
	observers []*Observer
	decisions bool            // an observer has a Decision function, or there is a witness
	keys      bool            // an observer has a KeyDenied function
	witness   witness         // or nil
	steps     report.Throttle // of lines about a clock that stepped back
	renewals  report.Throttle // of lines about permits that were not renewed
	closed    atomic.Bool

	hiding  sync.Map // hiddenAt -> nil: a line was written
	hidings atomic.Int64
}

// newEvents returns events for loggers, of which nil stands for [slog.Default].
func newEvents(loggers ...*slog.Logger) *events {
	e := new(events)
	e.log = &limitedLog{Log: report.Log{Loggers: loggers, Panicked: e.panicEvent}}
	return e
}

// observe adds an observer. A nil one is passed over.
func (e *events) observe(o *Observer) {
	if o != nil {
		e.observers = append(e.observers, o)
		e.decisions = e.decisions || o.Decision != nil
		e.keys = e.keys || o.KeyDenied != nil
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

// decides reports whether anybody may listen to decisions.
func (e *events) decides() bool { return e.decisions || recording.Load() }

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
	admitted, latency := decide.Admitted(tries), clock.Now()-arrived
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
	e.log.shadowDenied(ruleOf(c.Plan), c.Cost, &Decision{Limit: c.Plan.Capacity, RetryAfter: Never}, clock.Now())
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
	e.log.degraded(r, policy, err)
	for _, o := range e.observers {
		if o.Failure != nil {
			notifyWith(e, ctx, o.Failure, FailureEvent{Rule: r.Name, Class: ClassOf(err), Policy: policy, Err: err})
		}
	}
}

// unsettled reports that a decision could not be settled.
func (e *events) unsettled(ctx context.Context, r *Rule, err error) {
	e.log.unsettled(r, err)
	for _, o := range e.observers {
		if o.Failure != nil {
			notifyWith(e, ctx, o.Failure, FailureEvent{Rule: r.Name, Class: ClassOf(err), Settling: true, Err: err})
		}
	}
}

// heldOff reports that the results of a call hold calls back, or that the store could not.
func (e *events) heldOff(ctx context.Context, r *Rule, d time.Duration, bounded bool, err error) {
	e.log.heldOff(r, d, bounded, err)
	for _, o := range e.observers {
		if err != nil && o.Failure != nil {
			notifyWith(e, ctx, o.Failure, FailureEvent{Rule: r.Name, Class: ClassOf(err), Holding: true, Err: err})
		}
	}
}

// A hiddenAt is where a refusal was hidden.
type hiddenAt struct{ rule, route string }

// hidden reports that the client of a refused call was told of something else. There is
// a line for each rule and route, up to a bound.
func (e *events) hidden(ctx context.Context, rule, route string) {
	at := hiddenAt{rule, route}
	if _, told := e.hiding.Load(at); !told && e.hidings.Load() < maxKnown {
		if _, told = e.hiding.LoadOrStore(at, nil); !told {
			e.hidings.Add(1)
			attrs := []slog.Attr{slog.String("rule", rule)}
			if route != "" {
				attrs = append(attrs, slog.String("route", route))
			}
			e.log.Write(slog.LevelWarn, "a refused call was answered as something else: its client cannot know that it is over a limit, or when to come back", 0,
				append(attrs, slog.String("help", "return the refusal's error as it is or wrapped, or answer with 429 or RESOURCE_EXHAUSTED"))...)
		}
	}
	for _, o := range e.observers {
		if o.Hidden != nil {
			notifyWith(e, ctx, o.Hidden, HiddenEvent{rule})
		}
	}
}

// notRenewed reports that permits of a rule were not renewed.
func (e *events) notRenewed(rule string, err error) {
	if skipped, ok := e.renewals.Due(clock.Now()); ok {
		e.log.Write(slog.LevelWarn, "permits were not renewed by their store", skipped, slog.String("rule", rule), slog.Any("error", err))
	}
}

// breaker reports that the circuit breaker of a node has opened or closed. The
// node is a server's address, or empty if there is one server or it is unknown.
func (e *events) breaker(node string, open bool) {
	level, msg := slog.LevelInfo, "rate limit store responding again: circuit breaker closed"
	if open {
		level, msg = slog.LevelWarn, "rate limit store not responding: circuit breaker open"
	}
	var attrs []slog.Attr
	if node != "" {
		attrs = append(attrs, slog.String("server", "one of several"))
	}
	e.log.Write(level, msg, 0, attrs...)
	for _, o := range e.observers {
		notify(e, o.Breaker, BreakerEvent{open, node})
	}
}

// steppedBack reports that the clock of a node has stepped back, at most once a second.
func (e *events) steppedBack(node string, by time.Duration) {
	skipped, ok := e.steps.Due(clock.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.Duration("by", by)}
	if node != "" {
		attrs = append(attrs, slog.String("node", node))
	}
	e.log.Write(slog.LevelWarn, "the clock of the rate limit store stepped back: keys may deny calls for up to a window, and those used more than a window ahead count anew", skipped, attrs...)
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

// warn writes a line that the caller knows to be rare.
func (e *events) warn(msg string, attrs ...slog.Attr) {
	e.log.Write(slog.LevelWarn, msg, 0, attrs...)
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

// listeners are the events of all limiters on a store. The zero value has none.
// It is safe for concurrent use, and reading it takes one atomic load.
type listeners struct {
	mu     sync.Mutex
	each   []*events
	joined atomic.Pointer[events]
}

// Load returns events that report to every limiter: once to each of their
// loggers, and once to each of their observers. It returns nil before the first
// limiter was added.
func (l *listeners) Load() *events { return l.joined.Load() }

// add adds the events of a limiter, and reports whether there were none.
func (l *listeners) add(e *events) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each = append(l.each, e)
	l.join()
	return len(l.each) == 1
}

// remove removes what add added. It may be called again.
func (l *listeners) remove(e *events) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.each, e); i >= 0 {
		l.each = slices.Delete(l.each, i, i+1)
		l.join()
	}
}

func (l *listeners) join() {
	var loggers []*slog.Logger
	var observers []*Observer
	for _, e := range l.each {
		loggers, observers = append(loggers, e.log.Loggers...), append(observers, e.observers...)
	}
	joined := newEvents(distinct(loggers)...)
	for _, o := range distinct(observers) {
		joined.observe(o)
	}
	l.joined.Store(joined)
}

// distinct removes repeated values from s.
func distinct[T comparable](s []T) []T {
	kept := s[:0]
	for _, v := range s {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}
