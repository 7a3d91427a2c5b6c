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
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
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
	events     *report.Events
	onRefusal  func(context.Context, error) error // or nil

	poller      *plan.Poller[Overrides]   // nil: nothing is overridden
	scaler      rule.Scaler               // in place of the rules' own, or nil
	registered  findings.Map[*Rule, Rule] // as they were
	terms       termTable                 // of the registered rules
	unusedTimer *time.Timer
	reporter    server.Reporter
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
	parts, plain := rule.Engine.PartsOf(limit).Plain()
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
	parts, _ := rule.Engine.PartsOf(limit).Plain()
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
	c.Adopt(p, rule.Engine.PartsOf(limit).Bytes(), limit.Cost, limit.Max, try, rechecks)
	err := l.engine.Ask(ctx, c)
	return l.finish(ctx, (*decide.Tried)(c), limits, err, d)
}

// answer fills in an empty decision, tells everybody of it who wants to know, and returns its
// caller's error. It keeps nothing of what it is given.
func (l *Limiter) answer(ctx context.Context, charges []decide.Charge, tries []terms.Charge,
	arrived, waited time.Duration, d *Decision) error {
	tightest := d.fill(charges, tries)
	l.engine.Tell(ctx, charges, tries, decide.Answer{Arrived: arrived, Waited: waited, Source: d.Source, Admitted: d.Allowed})
	if !d.Allowed {
		return l.refuse(&charges[tightest], d, arrived)
	}
	return nil
}

// finish answers a call that was decided, unless err says that nobody could.
func (l *Limiter) finish(ctx context.Context, c *decide.Tried, limits []Limit, err error, d *Decision) error {
	*d = Decision{}
	if undecided, ok := err.(decide.Unavailable); ok {
		l.engine.TellUndecided(ctx, c)
		d.Source = rule.SourceFailure
		if recording.Anyone.Load() && len(c.Charges) > 0 {
			undecided.Caller = recording.CallerOf(c.Charges[0].Key)
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
func (d *Decision) keep(l *Limiter, limits []Limit, c *decide.Tried) {
	if len(limits) > 1 {
		d.owner, d.flags, d.flag, d.items = l, c.Flags, c.Flag, c.Items(limits)
	} else if len(limits) == 1 && len(c.Tries) == 0 {
		d.keepOne(l, &limits[0], &c.Try, &terms.Charge{})
	} else if len(limits) == 1 {
		t := &c.Tries[0]
		d.keepOne(l, &limits[0], &c.Try, t)
		if c.Charges[0].Made(t) < limits[0].Cost {
			d.items = c.Items(limits)
		}
	}
}
