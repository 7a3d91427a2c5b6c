package runtime

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/adapt"
	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/meter"
	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Limiter has a [Store] decide calls and turns its answers into errors. It is safe for
// concurrent use. A program usually has one.
type Limiter struct {
	engine   decide.Engine
	plans    plan.Table
	store    Store       // nil: every call is decided by its rule's failure policy
	redis    *RedisStore // which store is or embeds, or nil
	cap      *processCap // nil: no cap
	switched bool        // limits can be switched off
	enabled  func() bool
	events   *events
	denied   func(context.Context, error) error // or nil

	namespace string
	fail      FailurePolicy
	replicas  int64

	follow     *override.Follower[Overrides] // nil: nothing is overridden
	overrides  atomic.Pointer[overrideSet]
	scaler     Scaler // in place of the rules' own, or nil
	factors    adapt.Factors[*Rule]
	registered bounded.Map[*Rule, Rule] // as they were
	terms      termTable                // of the registered rules
	samples    bounded.Map[*Rule, findings.Sample]
	unused     *time.Timer
	reports    reports
	settler    settle.Settler
	permits    permit.Permits
	closed     atomic.Bool
}

// Enabled reports whether limits are in force, see [WithEnabled] and [WithOverrides]. Generated
// code calls it before it builds a key.
func (l *Limiter) Enabled() bool { return !l.switched || l.switchedOn() }

// Take charges all limits, or none of them if one has no room. If rules have a Wait it returns
// when it is the call's turn. The error is nil if and only if the call may go on. Otherwise,
// without [WithRefusalError], it is
//
//   - a [*LimitedError], which is [ErrLimited], if a limit has no room;
//   - [ErrUnavailable] if the store gave no answer and a rule fails closed;
//   - [ErrInvalidKey] if a key could not be built and its rule refuses that, see
//     [InvalidKeyPolicy];
//   - [ErrInvalidLimit] if the numbers of a limit are out of bounds;
//   - the context's error, if the context ended first.
//
// A limit in [ModeShadow] mode causes none of these, and no wait. Without limits every call may
// go on. A call that waits is decided by the overrides, the load and the kill switch that hold
// at each try.
//
// Limits with one key, which is that of rules with one Prefix and of equal parts, are charged
// together: what both cost, but no more than could ever be admitted, under the lower max and
// the first one's Name. Their rules must be equal but for Max, Name, Message, Mode, Fail and
// Wait, or it is [ErrInvalidLimit]. One in [ModeShadow] mode is left out.
func (l *Limiter) Take(ctx context.Context, limits ...Limit) (d Decision, err error) {
	err = l.takeInto(ctx, limits, &d)
	return d, err
}

// takeInto is Take for a decision of its caller's. Take is inlined for it, which saves a copy
// of every decision.
func (l *Limiter) takeInto(ctx context.Context, limits []Limit, d *Decision) (err error) {
	if !l.Enabled() || exempting.Load() && isExempt(ctx) {
		d.Allowed = true
		return nil
	}
	var p *plan.Plan
	var paid paidCap
	if len(limits) == 1 {
		p = l.plain(&limits[0])
	}
	if p != nil {
		err = l.takeOne(ctx, limits, p, &paid, d)
	} else {
		err = l.takeAll(ctx, limits, &paid, d)
	}
	if err != nil {
		l.cap.giveBack(&paid)
		err = l.refused(ctx, err)
	}
	return err
}

// plain returns the plan for a limit as most are: one that is decided at once, at a cost that
// can be, and on a key of ordinary length. It returns nil for others.
func (l *Limiter) plain(limit *Limit) *plan.Plan {
	parts, plain := limit.key.parts.Plain()
	if !plain || limit.rule == nil || limit.cost <= 0 {
		return nil
	}
	var p *plan.Plan
	if l.overrides.Load() == nil && limit.rule.Adaptive == nil { // which change nothing
		k := plan.Key{Rule: unsafe.Pointer(limit.rule), Max: limit.max, Period: limit.period}
		p = l.plans.Find(k, k.Hash())
	}
	if p == nil {
		p, _, _ = l.planOf(limit)
	}
	if p == nil || len(parts) > p.Plain || limit.cost > p.Most {
		return nil
	}
	return p
}

// takeOne takes a call with one plain limit. All that it needs until the store is asked is on
// the stack.
func (l *Limiter) takeOne(ctx context.Context, limits []Limit, p *plan.Plan, paid *paidCap, d *Decision) error {
	limit := &limits[0]
	var key [terms.ShortKey]byte
	var charges [1]decide.Charge
	var tries [1]terms.Charge // set in place, since a copy waits for what was just written
	parts, _ := limit.key.parts.Plain()
	whole := p.KeyIn(&key, parts)
	charges[0].Plan, charges[0].Key, charges[0].Cost, charges[0].Own, charges[0].Limits = p, whole, limit.cost, limit.max, 1
	tries[0].Terms, tries[0].Label, tries[0].Key, tries[0].Cost = p.Terms, &p.Label, whole, limit.cost
	try := decide.Try{Arrived: clock.Now()}
	if l.cap != nil && !p.Unsatisfiable(limit.cost) {
		if err := l.admitted(ctx, paid, d); err != nil {
			return err
		}
	}
	if !l.engine.Local(ctx, charges[:], tries[:], &try) {
		return l.askOne(ctx, limits, p, &try, tries[0].Rechecks, d)
	}
	err := l.answer(ctx, charges[:], tries[:], try.Arrived, d)
	if tries[0].At != 0 {
		if try.Page == nil {
			try.Page, try.Receipt = receipts.Issue()
		}
		d.by, d.page, d.receipt = l, try.Page, try.Receipt
		d.one = *limit
		d.one.at, d.one.mark = tries[0].At, tries[0].Mark
		if tries[0].Lapses() {
			l.permits.Keep(p, &tries[0], try.Arrived)
		}
	}
	return err
}

// askOne has the store decide what takeOne could not.
func (l *Limiter) askOne(ctx context.Context, limits []Limit, p *plan.Plan, try *decide.Try, rechecks bool, d *Decision) error {
	c, limit := decide.NewCall(), &limits[0]
	defer c.Free()
	c.Adopt(p, limit.key.bytes(), limit.cost, limit.max, try, rechecks)
	return l.finish(ctx, c, limits, l.engine.Ask(ctx, c), d)
}

// takeAll takes a call with any limits.
func (l *Limiter) takeAll(ctx context.Context, limits []Limit, paid *paidCap, d *Decision) error {
	req := newRequest()
	defer req.free()
	if err := req.fill(ctx, l, limits); err != nil {
		return err
	}
	if l.cap != nil && !decide.Unsatisfiable(req.Charges) {
		if err := l.admitted(ctx, paid, d); err != nil {
			return err
		}
	}
	err := l.take(ctx, req, limits, d)
	req.ended(ctx, l, err)
	return err
}

// take has a call decided, and decided again after a wait where its rules have one. It returns
// when it is the call's turn.
func (l *Limiter) take(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	*d = Decision{}
	var began time.Time
	if req.Waits() && !req.tentative {
		began = time.Now()
	}
	waited, err := false, error(nil)
	if l.permits.Waiting() {
		req.Begin(ctx, began, clock.Now())
		waited, err = req.Line(ctx)
	}
	for {
		if waited && err == nil {
			// By what holds now.
			if req.Again = true; l.Enabled() {
				err = req.fill(ctx, l, limits)
			} else {
				req.Clear()
			}
		}
		if err != nil || len(req.Charges) == 0 {
			req.Leave(err == nil)
			if d.Allowed = err == nil; d.Allowed { // nothing is left to decide
				d.keep(l, &req.Call.Call, limits)
				d.keepEach(req, limits)
			}
			return err
		}
		req.Begin(ctx, began, clock.Now())
		if !l.engine.Known(ctx, &req.Call.Call) {
			err = l.engine.Ask(ctx, &req.Call.Call)
		}
		if err == nil && !terms.Admitted(req.Tries) {
			if req.tentative {
				return meter.ErrNoRoom
			}
			if pause, ok := req.Pause(); ok {
				waited, err = true, req.Await(ctx, pause, l.inForce(limits))
				continue
			}
		}
		req.Decided(err != nil)
		err = l.finish(ctx, &req.Call.Call, limits, err, d)
		d.keepEach(req, limits)
		if err != nil || req.Delay() == 0 {
			return err
		}
		if err = req.AwaitTurn(ctx, l.inForce(limits)); err != nil {
			d.left = true
			_ = l.Refund(ctx, *d)
			*d = Decision{}
		}
		return err
	}
}
