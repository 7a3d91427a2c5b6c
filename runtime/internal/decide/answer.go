package decide

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// An Answer is what became of a call that arrived at an instant, and had waited before.
type Answer struct {
	Arrived, Waited time.Duration
	Source          rule.Source
	Admitted        bool
}

// Tell tells everybody of a decided call who wants to know. Its charges may be on the stack of its
// caller: nothing of them is kept.
func (e *Engine) Tell(ctx context.Context, charges []Charge, tries []terms.Charge, a Answer) {
	if e.Events.Decisions || e.Events.Calls || recording.Anyone.Load() {
		e.tellDecided(ctx, charges, tries, a, 0)
	}
	mine := a.Source == rule.SourceProcess // by its cap, which has no callers
	if e.Events.Keys && !mine {
		e.tellKeys(ctx, charges, tries)
	}
	if e.Calls != nil && !mine {
		e.count(charges, tries, a)
	}
	shadowed := false
	for i := range tries {
		c, t := &charges[i], &tries[i]
		if s := c.Plan.Sample; s != nil && !s.Done.Load() {
			e.sample(c, t, a.Arrived)
		}
		if t.Shadow && !t.Allowed {
			shadowed = true
			e.tellShadow(ctx, c, t, a.Source, a.Arrived)
		}
	}
	if (shadowed || !a.Admitted) && e.Calls != nil && e.Calls.Refused != nil && !mine {
		e.countRefused(charges, tries, a.Admitted)
	}
}

// TellUndecided tells of a call that nobody has decided.
func (e *Engine) TellUndecided(ctx context.Context, c *Tried) {
	e.tellDecided(ctx, c.Charges, c.Tries, Answer{Arrived: c.Arrived, Waited: c.Waited()}, observe.VerdictUnavailable)
	for i := 0; i < len(c.Charges) && e.Calls != nil; i++ {
		countOne(&e.Calls.Decided[callers.Undecided], false)
	}
}

// TellUnsatisfiable tells of shadow limits that could never admit a call, and were left out of its
// decision for that. Err is why the call does not go on, or nil.
func (e *Engine) TellUnsatisfiable(ctx context.Context, c *Call, err error) {
	for i := range c.Unsatisfiable {
		o, tries, a := c.Unsatisfiable[i:i+1], make([]terms.Charge, 1), Answer{Arrived: clock.Now()}
		t := &tries[0]
		t.Shadow = true
		if err == nil {
			t.RetryAfter = Never
			e.tellShadow(ctx, &o[0], t, rule.SourceNone, a.Arrived)
			e.tellDecided(ctx, o, tries, a, 0)
		} else if errors.Is(err, ErrLimited) {
			t.Allowed, t.Remaining = true, o[0].Plan.Capacity
			e.tellDecided(ctx, o, tries, a, observe.VerdictNotCharged)
		}
	}
}

// tellDecided tells of each limit of a call. Its verdict is that of the tries, unless all have another
// one.
func (e *Engine) tellDecided(ctx context.Context, charges []Charge, tries []terms.Charge, a Answer, all observe.Verdict) {
	recorders := recording.Functions[func(observe.DecisionEvent)](ctx)
	refusals := recording.Functions[*recording.Refusals[observe.Refusal]](ctx)
	decisions := recorders != nil || e.Events.Decisions
	if refusals == nil && !decisions && !e.Events.Calls {
		return
	}
	admitted, latency := terms.Admitted(tries), clock.Now()-a.Arrived
	if e.Events.Calls && len(charges) > 0 {
		note := callNotes.Get().(*callNote)
		for i := range charges {
			note.add(&charges[i], &tries[i], verdict(&tries[i], admitted, all))
		}
		at := clock.Time(a.Arrived + latency/2)
		for _, o := range e.Events.Observers {
			if o.Call != nil {
				e.notifyCall(ctx, o, note.decided, a.Waited, at)
			}
		}
		note.free()
	}
	for i := 0; decisions && i < len(charges); i++ {
		c, t := &charges[i], &tries[i]
		p := c.DecidingPlan(t)
		window, _ := p.Numbers.Present()
		ev := observe.DecisionEvent{
			Rule: p.Name, Source: t.Source, Mode: p.Rule.Mode, Algorithm: p.Rule.Algorithm, Window: window,
			Cost: c.Cost, Limit: p.Capacity, Max: p.Max, Remaining: t.Remaining, RetryAfter: t.RetryAfter,
			ResetAfter: t.ResetAfter, MoreAfter: t.MoreAfter, Verdict: verdict(t, admitted, all),
			Blocked: t.Blocked, EmptyPart: c.EmptyPart, InvalidKey: c.InvalidKey, Outgoing: p.Rule.Outgoing,
			Overridden: p.Rule != p.Declared, Latency: latency,
		}
		e.tellDecision(ctx, recorders, c, t.At, &ev)
	}
	if admitted && all == 0 {
		for r := refusals; r != nil; r = r.Outer {
			for i := 0; i < len(charges) && r.Func.Standing.Any(); i++ {
				r.Func.Standing.Lift(recording.CallerOf(charges[i].Key))
			}
		}
	}
}

// verdict returns what was decided about a limit of a call that was admitted or not.
func verdict(t *terms.Charge, admitted bool, all observe.Verdict) (v observe.Verdict) {
	switch {
	case all != 0:
		v = all
	case !t.Allowed && t.Shadow:
		v = observe.VerdictShadowRefused
	case !t.Allowed:
		v = observe.VerdictRefused
	case !admitted:
		v = observe.VerdictNotCharged
	}
	return v
}

// tellDecision tells of a decision. The event is copied for those who receive it, and nowhere else,
// since it is large.
func (e *Engine) tellDecision(ctx context.Context, recorders *recording.List[func(observe.DecisionEvent)], c *Charge, at int64, ev *observe.DecisionEvent) {
	if e.Events.Witness != nil {
		e.Events.Witness.Decided(c.Plan.Rule, string(c.Key), at, *ev)
	}
	for r := recorders; r != nil; r = r.Outer {
		report.Notify(e.Events, "recorder", r.Func, *ev)
	}
	for _, o := range e.Events.Observers {
		if o.Decision != nil {
			e.notifyDecision(ctx, o, ev)
		}
	}
}

func (e *Engine) notifyCall(ctx context.Context, o *observe.Observer, limits []observe.CallLimit, waited time.Duration, at time.Time) {
	defer e.Events.Contain("observer")
	o.Call(ctx, observe.CallEvent{Limits: limits, Waited: waited, Decided: at})
}

func (e *Engine) notifyDecision(ctx context.Context, o *observe.Observer, ev *observe.DecisionEvent) {
	defer e.Events.Contain("observer")
	o.Decision(ctx, *ev)
}

// tellShadow tells of the refusal of a charge by a limit that refuses nobody.
func (e *Engine) tellShadow(ctx context.Context, c *Charge, t *terms.Charge, by rule.Source, arrived time.Duration) {
	p := c.DecidingPlan(t)
	if p.Rule.Mode == rule.ModeSoft {
		e.Exceeded(ctx, p.Rule, p.Capacity, t.Remaining, t.RetryAfter, t.Blocked)
	}
	if skipped, due := e.Events.Log.RefusalDue(p.Declared, arrived, 0); due {
		e.Events.Log.Refused(p.Declared, skipped, report.Refusal{Mode: p.Rule.Mode.String(), Source: by.String(),
			Limit: p.Capacity, Cost: c.Cost, RetryAfter: t.RetryAfter, Blocked: t.Blocked})
	}
}

// The first exact calls of an outcome since the last report are counted one by one. Of later calls one
// in sampled is counted, for so many.
const (
	exact   = 1_024
	sampled = 64
)

// count counts the limits of a call, and draws keys that Redis was asked about. Instants are as good as
// random numbers, since many calls differ by nanoseconds.
func (e *Engine) count(charges []Charge, tries []terms.Charge, a Answer) {
	drawn := uint64(a.Arrived)*0x9e3779b97f4a7c15>>32%sampled == 0
	for i := range tries {
		t, p, o := &tries[i], charges[i].Plan, callers.Admitted
		switch {
		case t.Source == rule.SourceFailure:
			o = callers.Undecided
		case !t.Allowed && t.Shadow:
			o = callers.Shadow
		case !t.Allowed:
			o = callers.Over
		case !a.Admitted: // by another limit
			continue
		}
		if n := countOne(&e.Calls.Decided[o], drawn); n > 0 && p.Sample != nil {
			p.Sample.Calls[o].Add(n)
		}
		if t.Source == rule.SourceStore {
			countOne(&e.Calls.Decided[callers.Asked], drawn)
			if drawn {
				e.Calls.Keys.Load().Add(p.Name, p.Parts(charges[i].Key), -1, sampled)
			}
		}
	}
}

// countOne counts a limit of a call, and returns for how many it stands: perhaps for none.
func countOne(calls *atomic.Int64, drawn bool) (n int64) {
	if calls.Load() < exact {
		n = 1
	} else if drawn {
		n = sampled
	} else {
		return 0
	}
	calls.Add(n)
	return n
}

// countRefused counts the keys of all limits that had no room for a call: of those in shadow mode also
// if it was not refused.
func (e *Engine) countRefused(charges []Charge, tries []terms.Charge, admitted bool) {
	for i := range tries {
		t, p, most := &tries[i], charges[i].Plan, int64(-1)
		if t.Allowed || admitted && !t.Shadow {
			continue
		}
		if t.Shadow {
			most = callers.Shadowed
		} else if p.Declared.Max == 0 {
			most = p.Max
		}
		if parts := p.Parts(charges[i].Key); parts != nil {
			e.Calls.Refused.Add(p.Name, parts, most)
		}
	}
}

// sample notes what a decided charge shows of whether its rule counts.
func (e *Engine) sample(c *Charge, t *terms.Charge, now time.Duration) {
	p := c.DecidingPlan(t)
	if p.Sample.AsksCaller() && p.Sample.Call(findings.CalledByWrapper()) {
		e.Events.Log.Find(report.WrappedTwice, p.Name, "")
	}
	if t.Source == rule.SourceFailure || t.Source == rule.SourceNone {
		return
	}
	parts := p.Parts(c.Key)
	if !t.Allowed {
		p.Sample.Refuse(parts)
		return
	}
	if t.At == 0 {
		return
	}
	// A permit comes back, and a limit without parts in its key has one for all.
	alone := len(parts) > 0 && !p.Terms.Is(algorithm.Lends) && t.Remaining == p.Capacity-c.Cost
	if p.Sample.Charge(parts, now, t.ResetAfter, alone) {
		e.Events.Log.Find(report.DistinctKeys, p.Name, "")
	}
}
