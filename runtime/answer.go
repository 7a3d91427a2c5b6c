package runtime

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// finish answers a call that was decided, unless err says that nobody could. Of a call with
// several limits the decision does not keep these yet.
func (l *Limiter) finish(ctx context.Context, c *decide.Call, limits []Limit, err error, d *Decision) error {
	if _, ok := err.(decide.Unavailable); ok {
		l.events.decided(ctx, c.Charges, c.Tries, c.Arrived, VerdictUnavailable)
		*d = Decision{Source: SourceFailure}
		return err
	}
	if *d = (Decision{}); err != nil {
		return err
	}
	err = l.answer(ctx, c.Charges, c.Tries, c.Arrived, d)
	charged := false
	for i := range c.Tries {
		t := &c.Tries[i]
		if charged = charged || t.At != 0; t.Lapses() && t.At != 0 {
			l.permits.Keep(c.Charges[i].By(t), t, c.Arrived)
		}
	}
	if charged {
		c.Prove()
	}
	if charged || err == nil {
		d.keep(l, c, limits)
	}
	return err
}

// answer fills in an empty decision, tells everybody of it who wants to know, and returns its
// caller's error. It keeps nothing of what it is given.
func (l *Limiter) answer(ctx context.Context, charges []decide.Charge, tries []terms.Charge, arrived time.Duration, d *Decision) error {
	tightest := d.fill(charges, tries)
	if l.events.decides() {
		l.events.decided(ctx, charges, tries, arrived, 0)
	}
	if l.events.keys && d.Source != SourceProcess {
		l.events.keysDenied(ctx, charges, tries)
	}
	for i := range tries {
		if s := charges[i].Plan.Sample; s != nil && !s.Done.Load() {
			l.learn(&charges[i], &tries[i], arrived)
		}
		if tries[i].Shadow && !tries[i].Allowed {
			l.events.shadowDenied(ctx, &charges[i], &tries[i], d.Source, arrived)
		}
	}
	if !d.Allowed {
		return l.events.deny(ruleOf(charges[tightest].Plan), charges[tightest].Cost, d, arrived)
	}
	return nil
}

// decides reports whether anybody may listen to decisions.
func (e *events) decides() bool { return e.decisions || recording.Load() }

// A witness is a store that learns the keys of decisions, and when they were charged, which no
// event for an [Observer] says: that of package ratetest. It is given copies, so that charges
// may be on the stack of their caller.
type witness interface {
	Decided(r *Rule, key string, at int64, ev DecisionEvent)
}

// decided reports each limit of a call that arrived at an instant. Its verdict is that of the
// tries, unless all have another one.
func (e *events) decided(ctx context.Context, charges []decide.Charge, tries []terms.Charge, arrived time.Duration, all Verdict) {
	recorders := recordersOf(ctx)
	if recorders == nil && !e.decisions {
		return
	}
	admitted, latency := terms.Admitted(tries), clock.Now()-arrived
	for i := range charges {
		c, t := &charges[i], &tries[i]
		p := c.By(t)
		rule := ruleOf(p)
		window, _ := p.Numbers.Present()
		ev := DecisionEvent{
			Rule: p.Name, Source: Source(t.Source), Mode: rule.Mode, Algorithm: rule.Algorithm, Window: window,
			Cost: c.Cost, Limit: p.Capacity, Max: p.Max, Remaining: t.Remaining, RetryAfter: t.RetryAfter, ResetAfter: t.ResetAfter, MoreAfter: t.MoreAfter,
			Blocked: t.Blocked, EmptyPart: c.EmptyPart, InvalidKey: c.InvalidKey, Outgoing: rule.Outgoing, Overridden: rule.overridden, Latency: latency,
		}
		switch {
		case all != 0:
			ev.Verdict = all
		case !t.Allowed && t.Shadow:
			ev.Verdict = VerdictShadowDenied
		case !t.Allowed:
			ev.Verdict = VerdictDenied
		case !admitted:
			ev.Verdict = VerdictNotCharged
		}
		e.decision(ctx, recorders, c, t.At, &ev)
	}
}

// never reports shadow limits that could never admit a call, and were left out of its decision
// for that. Err is why the call does not go on, or nil.
func (e *events) never(ctx context.Context, charges []decide.Charge, err error) {
	for i := range charges {
		c, now, tries := &charges[i], clock.Now(), make([]terms.Charge, 1)
		t := &tries[0]
		switch t.Shadow = true; {
		case err == nil:
			t.RetryAfter = Never
			e.shadowDenied(ctx, c, t, SourceNone, now)
			e.decided(ctx, charges[i:i+1], tries, now, 0)
		case errors.Is(err, ErrLimited):
			t.Allowed, t.Remaining = true, c.Plan.Capacity
			e.decided(ctx, charges[i:i+1], tries, now, VerdictNotCharged)
		}
	}
}

// decision reports a decision. The event is copied for those who receive it, and nowhere else,
// since it is large.
func (e *events) decision(ctx context.Context, recorders *recorder, c *decide.Charge, at int64, ev *DecisionEvent) {
	if e.witness != nil {
		e.witness.Decided(ruleOf(c.Plan), string(c.Key), at, *ev)
	}
	for r := recorders; r != nil; r = r.outer {
		notify(e, "recorder", r.record, *ev)
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

// fill fills in a decision about a call, and returns the place of the charge that it describes.
func (d *Decision) fill(charges []decide.Charge, tries []terms.Charge) (tightest int) {
	if len(tries) > 1 {
		tightest = decide.Tightest(tries)
	}
	c := &tries[tightest]
	p := charges[tightest].By(c)
	if d.Source = Source(c.Source); len(tries) > 1 && !c.Recalled {
		d.Source = Source(decide.Source(tries))
	}
	d.Allowed = c.Allowed || c.Shadow
	d.Rule, d.Limit, d.Remaining, d.ResetAfter = p.Name, p.Capacity, c.Remaining, c.ResetAfter
	if !d.Allowed {
		d.RetryAfter, d.Blocked = c.RetryAfter, c.Blocked
	}
	return tightest
}

// keep notes that a call was decided, for a Meter, and what one limit was charged, for Settle.
func (d *Decision) keep(l *Limiter, c *decide.Call, limits []Limit) {
	if len(limits) == 0 {
		return
	}
	d.by, d.page, d.receipt = l, c.Page, c.Receipt
	if len(limits) == 1 {
		if d.one = limits[0]; len(c.Tries) == 1 {
			t := &c.Tries[0]
			d.one.at, d.one.mark = t.At, t.Mark
			if made := c.Charges[0].Made(t); made < d.one.cost {
				d.each = &settle.Item{Parts: slices.Clone(d.one.key.bytes()), At: t.At, Mark: t.Mark, Charged: made}
				d.one.describe(d.each)
			}
		}
	}
}

// keepEach notes what each of several limits was charged.
func (d *Decision) keepEach(req *request, limits []Limit) {
	if d.by == nil || len(limits) == 1 {
		return
	}
	items := req.shelf.Items(len(limits))
	d.each = &items[0]
	for i := range limits {
		items[i].Parts = req.shelf.Parts(limits[i].key.bytes())
		limits[i].describe(&items[i])
	}
	for i := range req.Tries {
		t := &req.Tries[i]
		made := req.Charges[i].Made(t)
		for set := req.Charges[i].Limits; set != 0; set &= set - 1 {
			o := &items[bits.TrailingZeros8(set)]
			o.At, o.Mark, o.Charged = t.At, t.Mark, min(o.Cost, made)
			made -= o.Charged
		}
	}
}

// describe fills in which limit an item is of.
func (l *Limit) describe(o *settle.Item) {
	o.Rule, o.Cost, o.Max, o.Period, o.Invalid = unsafe.Pointer(l.rule), l.cost, l.max, l.period, l.key.invalid()
}
