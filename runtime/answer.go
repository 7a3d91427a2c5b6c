package runtime

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/recording"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// finish answers a call that was decided, unless err says that nobody could.
func (l *Limiter) finish(ctx context.Context, c *decide.Call, limits []Limit, err error, d *Decision) error {
	*d = Decision{}
	if undecided, ok := err.(decide.Unavailable); ok {
		l.events.reportDecided(ctx, c.Charges, c.Tries, c.Arrived, c.Waited(), observe.VerdictUnavailable)
		d.Source = rule.SourceFailure
		for i := 0; i < len(c.Charges) && l.refused.calls != nil; i++ {
			l.refused.calls.count(outcomeUndecided, false)
		}
		if recording.Anyone.Load() && len(c.Charges) > 0 {
			undecided.Caller = callerOf(c.Charges[0].Key)
			return undecided
		}
	}
	if err != nil {
		return err
	}
	err = l.answer(ctx, c.Charges, c.Tries, c.Arrived, c.Waited(), d)
	charged := false
	for i := range c.Tries {
		t := &c.Tries[i]
		charged = charged || t.At != 0
		if t.Lapses() && t.At != 0 {
			l.ledger.Permits.Record(c.Charges[i].DecidingPlan(t), t, c.Arrived)
		}
	}
	if charged {
		c.AddFlag()
	}
	if charged || err == nil {
		d.keep(l, limits, c)
	}
	return err
}

// answer fills in an empty decision, tells everybody of it who wants to know, and returns its
// caller's error. It keeps nothing of what it is given.
func (l *Limiter) answer(ctx context.Context, charges []decide.Charge, tries []terms.Charge,
	arrived, waited time.Duration, d *Decision) error {
	tightest := d.fill(charges, tries)
	if l.events.hearsDecisions() {
		l.events.reportDecided(ctx, charges, tries, arrived, waited, 0)
	}
	if l.events.hearKeys && d.Source != rule.SourceProcess {
		l.events.reportKeysRefused(ctx, charges, tries)
	}
	if l.refused.calls != nil && d.Source != rule.SourceProcess {
		l.countCalls(charges, tries, arrived, d.Allowed)
	}
	shadowed := false
	for i := range tries {
		if s := charges[i].Plan.Sample; s != nil && !s.Done.Load() {
			l.recordSample(&charges[i], &tries[i], arrived)
		}
		if tries[i].Shadow && !tries[i].Allowed {
			shadowed = true
			l.events.reportShadowRefusal(ctx, &charges[i], &tries[i], d.Source, arrived)
		}
	}
	if (shadowed || !d.Allowed) && l.refused.counter != nil && d.Source != rule.SourceProcess {
		l.refused.count(charges, tries, d.Allowed)
	}
	if !d.Allowed {
		return l.events.refuse(&charges[tightest], d, arrived)
	}
	return nil
}

// countCalls counts the limits of a call that arrived at an instant, and draws keys that Redis was asked about.
// Instants are as good as random numbers, since many calls differ by nanoseconds.
func (l *Limiter) countCalls(charges []decide.Charge, tries []terms.Charge, arrived time.Duration, admitted bool) {
	c, drawn := l.refused.calls, uint64(arrived)*0x9e3779b97f4a7c15>>32%sampled == 0
	for i := range tries {
		t, p, o := &tries[i], charges[i].Plan, outcomeAdmitted
		switch {
		case t.Source == rule.SourceFailure:
			o = outcomeUndecided
		case !t.Allowed && t.Shadow:
			o = outcomeShadow
		case !t.Allowed:
			o = outcomeRefused
		case !admitted: // by another limit
			continue
		}
		if n := c.count(o, drawn); n > 0 && p.Sample != nil {
			p.Sample.Calls.Add(n)
		}
		if t.Source == rule.SourceStore {
			c.count(outcomeAsked, drawn)
			if drawn {
				c.keys.Load().Add(p.Name, p.Parts(charges[i].Key), -1, sampled)
			}
		}
	}
}

// count counts a limit of a call, and returns for how many it stands: perhaps for none.
func (c *calls) count(o outcome, drawn bool) (n int64) {
	if c.n[o].Load() < exact {
		n = 1
	} else if drawn {
		n = sampled
	} else {
		return 0
	}
	c.n[o].Add(n)
	return n
}

// hearsDecisions reports whether anybody may listen to decisions.
func (e *events) hearsDecisions() bool { return e.hearDecisions || recording.Anyone.Load() }

// A witness is a store that learns the keys of decisions, and when they were charged, which no
// event for an [observe.Observer] says: that of package ratetest. It is given copies, so that charges
// may be on the stack of their caller.
type witness interface {
	Decided(r *Rule, key string, at int64, ev observe.DecisionEvent)
}

// reportDecided reports each limit of a call that arrived at an instant, and had waited before. Its
// verdict is that of the tries, unless all have another one.
func (e *events) reportDecided(ctx context.Context, charges []decide.Charge, tries []terms.Charge,
	arrived, waited time.Duration, all observe.Verdict) {
	recorders := recording.Functions[func(observe.DecisionEvent)](ctx)
	refusals := recording.Functions[*recording.Refusals[observe.Refusal]](ctx)
	if recorders == nil && refusals == nil && !e.hearDecisions {
		return
	}
	admitted, latency := terms.Admitted(tries), clock.Now()-arrived
	var note *callNote
	if e.hearCalls && len(charges) > 0 {
		note = callNotes.Get().(*callNote)
	}
	for i := range charges {
		c, t := &charges[i], &tries[i]
		p := c.DecidingPlan(t)
		window, _ := p.Numbers.Present()
		ev := observe.DecisionEvent{
			Rule: p.Name, Source: t.Source, Mode: p.Rule.Mode, Algorithm: p.Rule.Algorithm, Window: window,
			Cost: c.Cost, Limit: p.Capacity, Max: p.Max, Remaining: t.Remaining, RetryAfter: t.RetryAfter,
			ResetAfter: t.ResetAfter, MoreAfter: t.MoreAfter,
			Blocked: t.Blocked, EmptyPart: c.EmptyPart, InvalidKey: c.InvalidKey, Outgoing: p.Rule.Outgoing,
			Overridden: p.Rule != p.Declared, Latency: latency,
		}
		switch {
		case all != 0:
			ev.Verdict = all
		case !t.Allowed && t.Shadow:
			ev.Verdict = observe.VerdictShadowRefused
		case !t.Allowed:
			ev.Verdict = observe.VerdictRefused
		case !admitted:
			ev.Verdict = observe.VerdictNotCharged
		}
		if note != nil {
			note.add(c, t, p, ev.Verdict)
		}
		e.decision(ctx, recorders, c, t.At, &ev)
	}
	if admitted && all == 0 {
		for r := refusals; r != nil; r = r.Outer {
			liftRefusals(&r.Func.Standing, charges)
		}
	}
	if note != nil {
		e.reportCall(ctx, note, waited, latency)
	}
}

// reportUnsatisfiable reports shadow limits that could never admit a call, and were left out of its decision
// for that. Err is why the call does not go on, or nil.
func (e *events) reportUnsatisfiable(ctx context.Context, charges []decide.Charge, err error) {
	for i := range charges {
		c, now, tries := &charges[i], clock.Now(), make([]terms.Charge, 1)
		t := &tries[0]
		t.Shadow = true
		if err == nil {
			t.RetryAfter = Never
			e.reportShadowRefusal(ctx, c, t, rule.SourceNone, now)
			e.reportDecided(ctx, charges[i:i+1], tries, now, 0, 0)
		} else if errors.Is(err, ErrLimited) {
			t.Allowed, t.Remaining = true, c.Plan.Capacity
			e.reportDecided(ctx, charges[i:i+1], tries, now, 0, observe.VerdictNotCharged)
		}
	}
}

// decision reports a decision. The event is copied for those who receive it, and nowhere else,
// since it is large.
func (e *events) decision(ctx context.Context, recorders *recording.List[func(observe.DecisionEvent)], c *decide.Charge, at int64, ev *observe.DecisionEvent) {
	if e.witness != nil {
		e.witness.Decided(c.Plan.Rule, string(c.Key), at, *ev)
	}
	for r := recorders; r != nil; r = r.Outer {
		notify(e, "recorder", r.Func, *ev)
	}
	for _, o := range e.observers {
		if o.Decision != nil {
			e.notifyDecision(ctx, o, ev)
		}
	}
}

func (e *events) notifyDecision(ctx context.Context, o *observe.Observer, ev *observe.DecisionEvent) {
	defer e.contain("observer")
	o.Decision(ctx, *ev)
}

// fill fills in a decision about a call, and returns the place of the charge that it describes.
func (d *Decision) fill(charges []decide.Charge, tries []terms.Charge) (tightest int) {
	switch len(tries) {
	case 0: // nothing had to be decided
		d.Allowed = true
		return 0
	case 1:
	default:
		tightest = decide.Tightest(tries)
	}
	c := &tries[tightest]
	p := charges[tightest].DecidingPlan(c)
	d.Source = c.Source
	if len(tries) > 1 && !c.Recalled {
		d.Source = decide.Source(tries)
	}
	d.Allowed = c.Allowed || c.Shadow
	d.Rule, d.Limit, d.Remaining, d.ResetAfter = p.Name, p.Capacity, c.Remaining, c.ResetAfter
	if !d.Allowed {
		d.RetryAfter, d.Blocked = c.RetryAfter, c.Blocked
	}
	return tightest
}

// keepOne notes what a lone limit was charged at a try, for Settle and for a Meter.
func (d *Decision) keepOne(l *Limiter, limit *Limit, try *decide.Try, t *terms.Charge) {
	d.owner, d.flags, d.flag = l, try.Flags, try.Flag
	d.chargedLimit, d.chargeTime, d.mark = *limit, t.At, t.Mark
}

// keep is keepOne for the limits of any call.
func (d *Decision) keep(l *Limiter, limits []Limit, c *decide.Call) {
	if len(limits) > 1 {
		d.owner, d.flags, d.flag = l, c.Flags, c.Flag
		d.keepEach(limits, c)
	} else if len(limits) == 1 && len(c.Tries) == 0 {
		d.keepOne(l, &limits[0], &c.Try, &terms.Charge{})
	} else if len(limits) == 1 {
		t := &c.Tries[0]
		d.keepOne(l, &limits[0], &c.Try, t)
		if made := c.Charges[0].Made(t); made < limits[0].Cost {
			d.items = &ledger.Item{Parts: slices.Clone(rule.PartsOf(&limits[0]).Bytes())}
			tenant, weight := rule.PartsOf(&limits[0]).Tenant()
			d.items.Tenant, d.items.Weight = slices.Clone(tenant), weight
			d.items.At, d.items.Mark, d.items.Charged = t.At, t.Mark, made
			describe(&limits[0], d.items)
		}
	}
}

// keepEach notes what each of several limits was charged.
func (d *Decision) keepEach(limits []Limit, c *decide.Call) {
	items := c.Arena.Items(len(limits))
	d.items = &items[0]
	for i := range limits {
		items[i].Parts = c.Arena.Parts(rule.PartsOf(&limits[i]).Bytes())
		tenant, weight := rule.PartsOf(&limits[i]).Tenant()
		items[i].Tenant, items[i].Weight = c.Arena.Parts(tenant), weight
		describe(&limits[i], &items[i])
	}
	for i := range c.Tries {
		t := &c.Tries[i]
		made := c.Charges[i].Made(t)
		for set := c.Charges[i].Limits; set != 0; set &= set - 1 {
			o := &items[bits.TrailingZeros8(set)]
			o.At, o.Mark, o.Charged = t.At, t.Mark, min(o.Cost, made)
			made -= o.Charged
		}
	}
}

// describe fills in which limit an item is of.
func describe(l *Limit, o *ledger.Item) {
	o.Rule, o.Cost, o.Max, o.Period, o.Invalid = l.Rule, l.Cost, l.Max, rule.PeriodOf(l), rule.PartsOf(l).Err()
}
