package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/meter"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Limiter has a [Store] decide calls and turns its answers into errors. It is safe for
// concurrent use. A program usually has one.
type Limiter struct {
	engine     decide.Engine
	plans      plan.Plans
	store      backend
	redis      *RedisStore // that of store, or nil
	processCap *processCap // nil: no cap
	hasSwitch  bool        // limits can be switched off
	hasMemory  bool        // its store is a MemoryStore of its own
	enabled    func() bool
	events     *events
	onRefusal  func(context.Context, error) error // or nil

	follower    *plan.Follower[Overrides] // nil: nothing is overridden
	scaler      rule.Scaler               // in place of the rules' own, or nil
	registered  bounded.Map[*Rule, Rule]  // as they were
	terms       termTable                 // of the registered rules
	unusedTimer *time.Timer
	reports     reports
	refused     refused
	ledger      *ledger.Ledger
	peers       *peerstate.Table
	closed      chan struct{} // closed when no call is to wait any more
	closeOnce   sync.Once
}

// Enabled reports whether limits are in force, see [WithEnabled] and [WithOverrides]. Generated
// code calls it before it builds a key.
func (l *Limiter) Enabled() bool { return !l.hasSwitch || l.checkSwitch() }

// NewKey is [rule.NewKey]. Generated code adds the parts of a key to it.
func NewKey() *Key { return rule.NewKey() }

// Take charges all limits, or none of them if one has no room. If rules have a Wait it returns
// when it is the call's turn. The error is nil if and only if the call may go on. Otherwise,
// without [WithRefusalError], it is
//
//   - a [*LimitedError], which is [ErrLimited], if a limit has no room;
//   - [ErrUnavailable] if the store gave no answer and a rule fails closed;
//   - [ErrClosed] if the limiter was closed while the call waited;
//   - [ErrInvalidKey] if a key could not be built and its rule refuses that, see
//     [rule.InvalidKeyPolicy];
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
	if !l.Enabled() || anyExempt.Load() && isExempt(ctx) {
		d.Allowed = true
		return nil
	}
	var p *plan.Plan
	var paid paidCap
	if len(limits) == 1 {
		p = l.plainPlan(&limits[0])
	}
	if p != nil {
		err = l.takeOne(ctx, limits, p, &paid, d)
	} else {
		err = l.takeAll(ctx, limits, &paid, d)
	}
	if err != nil {
		l.processCap.giveBack(&paid)
		err = l.refusalError(ctx, err)
	}
	return err
}

// plainPlan returns the plan for a limit as most are: one that is decided at once, at a cost that
// can be, and on a key of ordinary length. It returns nil for others.
func (l *Limiter) plainPlan(limit *Limit) *plan.Plan {
	parts, plain := rule.PartsOf(limit).Plain()
	if !plain || limit.Rule == nil || limit.Cost <= 0 {
		return nil
	}
	p, _, _ := l.plans.Plan(limit)
	if p == nil || len(parts) > p.Plain || limit.Cost > p.Most {
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
	parts, _ := rule.PartsOf(limit).Plain()
	whole := p.KeyIn(&key, parts)
	charges[0].Plan, charges[0].Key, charges[0].Limits = p, whole, 1
	charges[0].Cost, charges[0].DeclaredMax = limit.Cost, limit.Max
	tries[0].Terms, tries[0].Label, tries[0].Key, tries[0].Cost = p.Terms, &p.Label, whole, limit.Cost
	try := decide.Try{Arrived: clock.Now()}
	if l.processCap != nil && !p.Unsatisfiable(limit.Cost) {
		if err := l.chargeCap(ctx, paid, d); err != nil {
			return err
		}
	}
	if !l.engine.Local(ctx, charges[:], tries[:], &try) {
		return l.askOne(ctx, limits, p, &try, tries[0].Rechecks, d)
	}
	err := l.answer(ctx, charges[:], tries[:], try.Arrived, 0, d)
	if tries[0].At != 0 {
		if try.Page == nil {
			try.Page, try.Receipt = terms.IssueReceipt()
		}
		d.keepOne(l, limit, &try, &tries[0])
		if tries[0].Lapses() {
			l.ledger.Permits.Record(p, &tries[0], try.Arrived)
		}
	}
	return err
}

// askOne has the store decide what takeOne could not.
func (l *Limiter) askOne(ctx context.Context, limits []Limit, p *plan.Plan, try *decide.Try, rechecks bool,
	d *Decision) error {
	c, limit := decide.NewCall(), &limits[0]
	defer c.Free()
	c.Adopt(p, rule.PartsOf(limit).Bytes(), limit.Cost, limit.Max, try, rechecks)
	return l.finish(ctx, c, limits, l.engine.Ask(ctx, c), d)
}

// takeAll takes a call with any limits.
func (l *Limiter) takeAll(ctx context.Context, limits []Limit, paid *paidCap, d *Decision) error {
	req := newRequest()
	defer req.free()
	return l.takeFor(ctx, req, limits, paid, d)
}

// takeFor is takeAll in memory that its caller has.
func (l *Limiter) takeFor(ctx context.Context, req *request, limits []Limit, paid *paidCap, d *Decision) error {
	if err := req.fill(ctx, l, limits); err != nil {
		return err
	}
	if l.processCap != nil && !decide.Unsatisfiable(req.Charges) {
		if err := l.chargeCap(ctx, paid, d); err != nil {
			return err
		}
	}
	return l.take(ctx, req, limits, d)
}

// take has a call decided, and answers it when it is the call's turn.
func (l *Limiter) take(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	err := l.decide(ctx, req, limits)
	if req.LeftQueue() {
		l.leaveQueue(ctx, req, limits, Decision{})
	}
	if err == nil && req.mayWait != nil && !terms.Admitted(req.Tries) {
		d.fill(req.Charges, req.Tries)
		if req.mayWait() {
			return meter.ErrNoRoom
		}
	}
	err = l.finish(ctx, &req.Call, limits, err, d)
	if err == nil && req.Delay() > 0 {
		if err = req.AwaitTurn(ctx, slices.Clone(limits)); err != nil {
			l.leaveQueue(ctx, req, limits, *d)
			*d = Decision{}
		}
	}
	req.reportEnd(ctx, l, err)
	return err
}

// leaveQueue gives back the place in a queue, and all else, of a call that has left it. It was decided,
// or it was to be at its turn.
func (l *Limiter) leaveQueue(ctx context.Context, req *request, limits []Limit, d Decision) {
	if d.page == nil {
		req.Prove()
		d.keep(l, limits, &req.Call)
	}
	d.leftQueue = true
	_ = l.Refund(ctx, d)
}

// decide has a call tried until it is decided: once, or again after each wait that its rules allow.
func (l *Limiter) decide(ctx context.Context, req *request, limits []Limit) (err error) {
	var since time.Duration
	if req.Waits() && !req.tentative {
		since = clock.Now()
	}
	if since != 0 && l.ledger.Lines.Waiting() {
		req.Begin(ctx, since, since)
		err = l.engine.Line(ctx, &req.Call, limits)
	}
	for waits := true; waits && err == nil; {
		if err = l.try(ctx, req, limits, since); err == nil {
			waits, err = req.Await(ctx, limits)
		}
		if err == nil && !waits && req.Deferred() {
			waits, err = l.engine.TakeTurn(ctx, &req.Call, slices.Clone(limits), since)
		}
	}
	req.Decided(err != nil)
	return err
}

// try tries a call that has waited since an instant, by what holds now. Nothing has to be decided if
// that leaves it no charges.
func (l *Limiter) try(ctx context.Context, req *request, limits []Limit, since time.Duration) (err error) {
	switch {
	case req.Again && l.Enabled():
		err = req.fill(ctx, l, limits)
	case req.Again:
		req.Clear()
	}
	if err != nil || len(req.Charges) == 0 {
		return err
	}
	now := since
	if since == 0 || req.Again {
		now = clock.Now()
	}
	req.Begin(ctx, since, now)
	if !l.engine.Known(ctx, &req.Call) {
		err = l.engine.Ask(ctx, &req.Call)
	}
	if err == nil && req.tentative && !terms.Admitted(req.Tries) {
		return meter.ErrNoRoom
	}
	return err
}
