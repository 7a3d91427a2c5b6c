package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"weak"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// events reports what happens in a limiter, or in the store of several, to the log and to the
// observers.
type events struct {
	log           *report.Lines
	observers     []*observe.Observer
	hearDecisions bool    // an observer has a Decision function, or there is a witness
	hearKeys      bool    // an observer has a KeyRefused function
	hearShare     bool    // an observer has a Threshold function
	hearCalls     bool    // an observer has a Call function
	hearSettled   bool    // an observer has a Settlement function
	witness       witness // or nil
	shares        background.Queue[terms.Reached]
}

// newEvents returns events for lists of findings, and for loggers, of which nil stands for
// [slog.Default].
func newEvents(lists []*findings.List, loggers ...*slog.Logger) *events {
	e := new(events)
	e.log = &report.Lines{Log: report.Log{Loggers: loggers, Panicked: e.panicEvent}, Lists: lists}
	e.shares.Do = e.tellShares
	return e
}

// observe adds an observer. A nil one is passed over.
func (e *events) observe(o *observe.Observer) {
	if o != nil {
		e.observers = append(e.observers, o)
		e.hearDecisions = e.hearDecisions || o.Decision != nil || o.Call != nil
		e.hearCalls, e.hearSettled = e.hearCalls || o.Call != nil, e.hearSettled || o.Settlement != nil
		e.hearKeys = e.hearKeys || o.KeyRefused != nil
		e.hearShare = e.hearShare || o.Threshold != nil
	}
}

// reportFailure reports that a policy decides a limit, and why the store does not.
func (e *events) reportFailure(ctx context.Context, p *plan.Plan, policy FailurePolicy, err error) {
	class := ClassOf(err)
	e.log.Undecided(p.Declared, policy.String(), class.String(), err)
	e.notifyFailure(ctx, observe.FailureEvent{Rule: p.Name, Class: class, Policy: policy, Err: err})
}

// reportUnsettled reports that a decision could not be settled, by a rule as it was declared.
func (e *events) reportUnsettled(ctx context.Context, r *Rule, err error) {
	class := ClassOf(err)
	e.log.Unsettled(r, class.String(), err)
	e.notifyFailure(ctx, observe.FailureEvent{Rule: r.Name, Class: class, Settling: true, Err: err})
}

// reportHold reports that the results of a call hold calls back, or that the store could not.
func (e *events) reportHold(ctx context.Context, r *Rule, d time.Duration, bounded bool, err error) {
	class := ClassOf(err)
	e.log.Held(r, d, bounded, class.String(), err)
	if err != nil {
		e.notifyFailure(ctx, observe.FailureEvent{Rule: r.Name, Class: class, Holding: true, Err: err})
	}
}

// reportShadowRefusal reports the refusal of a charge, of a call that arrived at an instant, by a limit
// that refuses nobody.
func (e *events) reportShadowRefusal(ctx context.Context, charge *decide.Charge, c *terms.Charge, by rule.Source,
	arrived time.Duration) {
	p := charge.DecidingPlan(c)
	reportExceeded(ctx, p, c)
	if skipped, due := e.log.RefusalDue(p.Declared, arrived, 0); due {
		e.logRefusal(p, charge.Cost, &Decision{Source: by, Limit: p.Capacity, RetryAfter: c.RetryAfter,
			Blocked: c.Blocked}, skipped)
	}
}

// refuse reports the refusal of a charge, of a call that arrived at an instant, and returns the error
// for its caller.
func (e *events) refuse(c *decide.Charge, d *Decision, arrived time.Duration) error {
	spare, p := spareErrorPool.Get().(*spareErrors), c.Plan
	if skipped, due := e.log.RefusalDue(p.Declared, arrived, spare.stripe); due {
		e.logRefusal(p, c.Cost, d, skipped)
	}
	refusal := spare.next()
	spareErrorPool.Put(spare)
	refusal.Rule, refusal.Limit, refusal.Remaining, refusal.RetryAfter = d.Rule, d.Limit, d.Remaining, d.RetryAfter
	refusal.Blocked, refusal.Source, refusal.rule = d.Blocked, d.Source, p.Rule
	if recording.Anyone.Load() {
		refusal.caller = callerOf(c.Key)
	}
	return refusal
}

func (e *events) logRefusal(p *plan.Plan, cost int64, d *Decision, skipped int64) {
	e.log.Refused(p.Declared, skipped, report.Refusal{
		Mode: p.Rule.Mode.String(), Source: d.Source.String(), Limit: d.Limit, Cost: cost, RetryAfter: d.RetryAfter,
		Blocked: d.Blocked,
	})
}

// notifyFailure tells the observers what the store did not do.
func (e *events) notifyFailure(ctx context.Context, ev observe.FailureEvent) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Failure, ev)
	}
}

// waits tells of a call that waits.
func (e *events) waits(ctx context.Context, ev decide.WaitEvent) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Wait, observe.WaitEvent(ev))
	}
}

// reportBreaker reports that the circuit breaker of a node has opened or closed. The node is a
// server's address, or empty if there is one server or it is unknown.
func (e *events) reportBreaker(node string, open bool) {
	e.log.Breaker(node, open)
	for _, o := range e.observers {
		notify(e, "observer", o.Breaker, observe.BreakerEvent{Open: open, Node: node})
	}
}

// notify calls listen, unless it is nil. A panic is reported as one of a kind of function.
func notify[E any](e *events, kind string, listen func(E), ev E) {
	if listen != nil {
		defer e.contain(kind)
		listen(ev)
	}
}

// notifyWith is notify for a function of an observer that receives a call's context.
func notifyWith[E any](e *events, ctx context.Context, listen func(context.Context, E), ev E) {
	if listen != nil {
		defer e.contain("observer")
		listen(ctx, ev)
	}
}

// contain, deferred, ends a panic in a function that the limiter was given.
func (e *events) contain(in string) {
	if value := recover(); value != nil {
		e.log.Panic(in, value)
	}
}

func (e *events) panicEvent(in string) {
	for _, o := range e.observers {
		if o.Panic != nil {
			func() {
				defer func() { _ = recover() }() // it was called once
				o.Panic(observe.PanicEvent{In: in})
			}()
		}
	}
}

// noEvents are the events of no limiter.
var noEvents = newEvents(nil)

// joinEvents returns events that report to several limiters: to the list of each, once to each of
// their loggers, and once to each of their observers.
func joinEvents(each []*events) *events {
	var lists []*findings.List
	var loggers []*slog.Logger
	var observers []*observe.Observer
	for _, e := range each {
		lists, loggers, observers = append(lists, e.log.Lists...), append(loggers, e.log.Loggers...),
			append(observers, e.observers...)
	}
	all := newEvents(lists, report.Distinct(loggers)...)
	for _, o := range report.Distinct(observers) {
		all.observe(o)
	}
	return all
}

const (
	// manyLimiters is how many limiters on one store are too many for one program.
	manyLimiters = 100
	// crowdTime is in which time so many limiters of one rule, each in a memory of its own, are.
	crowdTime = time.Hour
)

// addTo adds e to the listeners of a store, and reports whether it is the first of them.
func (e *events) addTo(listeners *report.Group[*events]) (first bool) {
	n := listeners.Add(e, joinEvents)
	if n >= manyLimiters {
		e.tellMany("")
	}
	return n == 1
}

// tellMany says, to all limiters, that there are too many of them.
func (e *events) tellMany(rule string) {
	lines := report.Lines{Log: report.Log{Loggers: e.log.Loggers}, Lists: []*findings.List{&findings.Process}}
	lines.Find(report.ManyLimiters, rule, "")
}

// A crowd counts the limiters with one rule that have memories of their own.
type crowd struct {
	mu    sync.Mutex
	began time.Time
	size  int
}

// crowds are those of this process.
var crowds findings.Map[weak.Pointer[Rule], crowd]

// add adds a limiter, and reports whether there are too many.
func (c *crowd) add() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.began).Abs() > crowdTime {
		c.began, c.size = now, 0
	}
	c.size++
	return c.size >= manyLimiters
}

// shareListener returns the function that receives shares, or nil if no observer wants them.
func (e *events) shareListener() func(terms.Reached) {
	if !e.hearShare {
		return nil
	}
	return e.shares.Add
}

// tellShares reports that keys have used shares.
func (e *events) tellShares(all []terms.Reached) {
	for _, r := range all {
		for _, o := range e.observers {
			notify(e, "observer", o.Threshold, observe.ThresholdEvent(r))
		}
	}
}

// keyTextPool holds the bytes of events under way.
var keyTextPool = sync.Pool{New: func() any { return new([terms.MaxKey]byte) }}

// reportKeysRefused reports the keys of all limits of a decided call that had no room. It copies them,
// so that they may stay on their caller's stack.
func (e *events) reportKeysRefused(ctx context.Context, charges []decide.Charge, tries []terms.Charge) {
	for i := range tries {
		p := charges[i].Plan
		parts := p.Parts(charges[i].Key)
		if tries[i].Allowed || parts == nil {
			continue
		}
		text := keyTextPool.Get().(*[terms.MaxKey]byte)
		ev := observe.KeyRefusedEvent{Rule: p.Name, Key: append(text[:0], parts...), Shadow: p.Terms.Shadow}
		for _, o := range e.observers {
			notifyWith(e, ctx, o.KeyRefused, ev)
		}
		keyTextPool.Put(text)
	}
}
