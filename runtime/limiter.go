package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/ledger"
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

	poller      *plan.Poller[Overrides]   // nil: nothing is overridden
	scaler      rule.Scaler               // in place of the rules' own, or nil
	registered  findings.Map[*Rule, Rule] // as they were
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
	charges[0].Cost, charges[0].Max = limit.Cost, limit.Max
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
		if try.Flags == nil {
			try.Flags, try.Flag = terms.IssueFlag()
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
	c, limit := decide.NewCall(decide.Take), &limits[0]
	defer c.Free()
	c.Adopt(p, rule.PartsOf(limit).Bytes(), limit.Cost, limit.Max, try, rechecks)
	return l.finish(ctx, c, limits, l.engine.Ask(ctx, c), d)
}

// takeAll takes a call with any limits.
func (l *Limiter) takeAll(ctx context.Context, limits []Limit, paid *paidCap, d *Decision) error {
	c := decide.NewCall(decide.Take)
	defer c.Free()
	return l.takeFor(ctx, c, limits, paid, d)
}

// takeFor is takeAll in memory that its caller has.
func (l *Limiter) takeFor(ctx context.Context, c *decide.Call, limits []Limit, paid *paidCap, d *Decision) error {
	if err := l.engine.Plan(ctx, c, limits); err != nil {
		return err
	}
	if l.processCap != nil && !decide.Unsatisfiable(c.Charges) {
		if err := l.chargeCap(ctx, paid, d); err != nil {
			return err
		}
	}
	return l.take(ctx, c, limits, d)
}

// take has a planned call decided, and answers it when it is the call's turn.
func (l *Limiter) take(ctx context.Context, c *decide.Call, limits []Limit, d *Decision) error {
	err := l.engine.Run(ctx, c, limits)
	if c.State == decide.LeftQueue {
		l.leaveQueue(ctx, c, limits, Decision{})
	}
	if c.MayWait != nil && c.State == decide.Refused {
		d.fill(c.Charges, c.Tries)
		if c.MayWait() {
			return ledger.ErrNoRoom
		}
	}
	err = l.finish(ctx, c, limits, err, d)
	if err == nil && c.Delay() > 0 {
		if err = l.engine.AwaitTurn(ctx, c, limits); err != nil {
			l.leaveQueue(ctx, c, limits, *d)
			*d = Decision{}
		}
	}
	l.end(ctx, c, err)
	return err
}

// leaveQueue gives back the place in a queue, and all else, of a call that has left it. It was decided,
// or it was to be at its turn.
func (l *Limiter) leaveQueue(ctx context.Context, c *decide.Call, limits []Limit, d Decision) {
	if d.flags == nil {
		c.AddFlag()
		d.keep(l, limits, c)
	}
	d.leftQueue = true
	_ = l.Refund(ctx, d)
}

// end reports what is known only when a call is over: that its wait has ended, and which shadow
// limits could never admit it. Err is why it does not go on, or nil.
func (l *Limiter) end(ctx context.Context, c *decide.Call, err error) {
	c.End(ctx, err == nil)
	l.events.reportUnsatisfiable(ctx, c.Unsatisfiable, err)
}
