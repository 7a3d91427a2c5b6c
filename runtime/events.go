package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// events is where the parts of a limiter, and the store that it is given, say
// what happens: to its log and to its observer.
type events struct {
	log      *limitedLog
	observer *Observer // nil: nobody listens
	panics   sync.Map  // kind of function -> *throttle
}

// observable is a store that has something to say itself.
type observable interface{ attach(*events) }

// decides reports whether somebody listens to decisions.
func (e *events) decides() bool { return e.observer != nil && e.observer.Decision != nil }

// decided says what became of the limits of a call that came at an instant. A
// caller that gave up has had no decision.
func (e *events) decided(charges []Charge, came time.Duration, source Source, err error) {
	if err != nil && !errors.Is(err, ErrUnavailable) {
		return
	}
	call := Call{Charges: charges}
	ev, admitted := DecisionEvent{Latency: instant() - came}, call.admitted()
	for i := range charges {
		c := &charges[i]
		ev.Rule, ev.Cost, ev.Source, ev.Verdict = c.Rule.Name, c.Cost, source, Admitted
		if c.Recalled {
			ev.Source = SourceRecalled
		}
		switch {
		case err != nil:
			ev.Verdict = Unavailable
		case !c.Allowed && c.Rule.Mode == Shadow:
			ev.Verdict = ShadowDenied
		case !c.Allowed:
			ev.Verdict = Denied
		case !admitted:
			ev.Verdict = NotCharged
		}
		tell(e, e.observer.Decision, ev)
	}
}

// hopeless tells of a limit in the shadow that could never admit a call, and so
// takes no part in its decision.
func (e *events) hopeless(c *Charge) {
	e.log.denied(c, SourceNone, instant())
	if e.decides() {
		tell(e, e.observer.Decision, DecisionEvent{Rule: c.Rule.Name, Verdict: ShadowDenied, Cost: c.Cost})
	}
}

func (e *events) failure(r *Rule, policy FailurePolicy, err error) {
	e.log.degraded(r, policy, err)
	if e.observer != nil && e.observer.Failure != nil {
		tell(e, e.observer.Failure, FailureEvent{r.Name, ClassOf(err), policy})
	}
}

func (e *events) breaker(node string, open bool) {
	if open {
		e.warn("the rate limit store gives no answer and is left alone but for a probe now and then")
	} else {
		e.log.write(slog.LevelInfo, "the rate limit store answers again", 0)
	}
	if e.observer != nil {
		tell(e, e.observer.Breaker, BreakerEvent{open})
	}
}

func (e *events) override(ev OverrideEvent) {
	if e.observer != nil {
		tell(e, e.observer.Override, ev)
	}
}

func (e *events) scale(ev ScaleEvent) {
	if e.observer != nil {
		tell(e, e.observer.Scale, ev)
	}
}

func (e *events) memory(ev MemoryEvent) {
	if e.observer != nil {
		tell(e, e.observer.Memory, ev)
	}
}

// warn writes a line that the caller knows to be rare.
func (e *events) warn(msg string, attrs ...slog.Attr) {
	e.log.write(slog.LevelWarn, msg, 0, attrs...)
}

// tell calls a function of the observer, if it has it.
func tell[E any](e *events, listen func(E), ev E) {
	if listen != nil {
		defer e.contain("observer")
		listen(ev)
	}
}

// contain, deferred, ends a panic in a function that the limiter was given.
func (e *events) contain(in string) {
	if value := recover(); value != nil {
		e.panicked(in, value)
	}
}

func (e *events) panicked(in string, value any) {
	line, _ := e.panics.LoadOrStore(in, new(throttle))
	if skipped, ok := line.(*throttle).due(instant()); ok {
		e.log.write(slog.LevelError, "panic in a function that the rate limiter was given", skipped,
			slog.String("in", in), slog.String("panic", fmt.Sprint(value)), slog.String("stack", string(debug.Stack())))
	}
	if e.observer != nil && e.observer.Panic != nil {
		defer func() { _ = recover() }() // it has been told once
		e.observer.Panic(PanicEvent{in})
	}
}
