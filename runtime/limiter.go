package runtime

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/settle"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Limiter has a [Store] decide calls and turns its answers into errors. It is
// safe for concurrent use. A program usually has one.
type Limiter struct {
	engine   decide.Engine
	plans    plan.Table
	seed     maphash.Seed // of the marks of decisions
	store    Store        // nil: every call is decided by its rule's failure policy
	cap      *processCap  // nil: no cap
	switched bool         // limits can be switched off
	enabled  func() bool
	events   *events
	denied   func(context.Context, error) error // or nil

	namespace string
	fail      FailurePolicy
	replicas  int64
	local     *MemoryStore // counts where a rule fails locally

	follow     *follower // nil: nothing is overridden
	overrides  atomic.Pointer[overrideSet]
	scaling    scaling
	registered ruleTable[struct{}]
	settler    settle.Settler
	permits    permit.Permits
}

// Enabled reports whether limits are in force, see [WithEnabled] and
// [WithOverrides]. Generated code calls it before it builds a key.
func (l *Limiter) Enabled() bool { return !l.switched || l.switchedOn() }

// switchedOn reports whether neither the overrides nor the program's kill switch
// switch limits off. A kill switch that panics is on.
func (l *Limiter) switchedOn() (on bool) {
	if o := l.overrides.Load(); o != nil && !o.enabled() {
		return false
	}
	if l.enabled == nil {
		return true
	}
	defer func() {
		if value := recover(); value != nil {
			l.events.panicked("kill switch", value)
			on = true
		}
	}()
	return l.enabled()
}

// Take charges all limits, or none of them if one has no room. If rules have a
// Wait it returns when it is the call's turn. The error is nil if and only if the
// call may go on. Otherwise, without [WithDenied], it is
//
//   - a [*LimitedError], which is [ErrLimited], if a limit has no room;
//   - [ErrUnavailable] if the store gave no answer and a rule fails closed;
//   - [ErrInvalidKey] if a key could not be built and its rule fails closed;
//   - [ErrInvalidLimit] if the numbers of a limit are out of bounds;
//   - the context's error, if the context ended first.
//
// A limit in [ModeShadow] mode causes none of these, and no wait. Without limits
// every call may go on.
//
// A call that waits is decided by the overrides, the load and the kill switch that hold
// at each try.
//
// Limits with one key, which is that of rules with one Prefix and of equal parts, are
// charged together: what both cost, but no more than could ever be admitted, under the
// lower max and the first one's Name. Their rules must be equal but for Max, Name,
// Message, Mode, Fail and Wait, or it is [ErrInvalidLimit]. One in [ModeShadow] mode is left
// out.
func (l *Limiter) Take(ctx context.Context, limits ...Limit) (d Decision, err error) {
	err = l.takeInto(ctx, limits, &d)
	return d, err
}

// takeInto is Take for a decision of its caller's. Take is inlined for it, which saves
// a copy of every decision.
func (l *Limiter) takeInto(ctx context.Context, limits []Limit, d *Decision) (err error) {
	if !l.Enabled() || isExempt(ctx) {
		d.Allowed = true
		return nil
	}
	var p *plan.Plan
	if len(limits) == 1 {
		p = l.plain(&limits[0])
	}
	if p != nil {
		err = l.takeOne(ctx, limits, p, d)
	} else {
		err = l.takeAll(ctx, limits, d)
	}
	if err != nil {
		err = l.refused(ctx, err)
	}
	return err
}

// InFlight returns how many permits of [Concurrency] limits the calls of this
// process hold, by the name of the rule. A rule whose calls have all ended stays,
// at 0, unless there are more than 10,000 names.
func (l *Limiter) InFlight() map[string]int64 { return l.permits.InFlight() }

// plain returns the plan for a limit as most are: one that is decided at once, at a cost
// that can be, and on a key of ordinary length. It returns nil for others.
func (l *Limiter) plain(limit *Limit) *plan.Plan {
	if limit.rule == nil || limit.key.rare != nil || limit.cost <= 0 {
		return nil
	}
	p := l.found(limit.rule, limit.max)
	if p == nil {
		p, _, _ = l.planOf(limit)
	}
	if p == nil || !p.Plain || limit.cost > p.Most || !p.Fits(int(limit.key.n)) {
		return nil
	}
	return p
}

// takeOne takes a call with one plain limit. All that it needs until the store is asked
// is on the stack.
func (l *Limiter) takeOne(ctx context.Context, limits []Limit, p *plan.Plan, d *Decision) error {
	limit := &limits[0]
	var key [terms.ShortKey]byte
	var charges [1]decide.Charge
	var tries [1]terms.Charge // set in place, since a copy waits for what was just written
	whole := p.Whole
	if limit.key.n > 0 {
		whole = p.KeyIn(&key, limit.key.inline[:limit.key.n])
	}
	charges[0].Plan, charges[0].Key, charges[0].Cost, charges[0].Own, charges[0].Limits = p, whole, limit.cost, limit.max, 1
	tries[0].Terms, tries[0].Label, tries[0].Key, tries[0].Cost = p.Terms, &p.Label, whole, limit.cost
	try := decide.Try{Arrived: instant()}
	var paid paidCap
	if l.cap != nil {
		if err := l.admitted(ctx, &paid, d); err != nil {
			return err
		}
	}
	var err error
	if l.engine.Local(ctx, charges[:], tries[:], &try) {
		err = l.answer(ctx, charges[:], tries[:], try.Arrived, d)
		if tries[0].At != 0 {
			if try.Page == nil {
				try.Page, try.Receipt = receipts.Issue()
			}
			l.issue(d, limit.mark(p.NameHash), try.Page, try.Receipt)
		}
	} else {
		req := newRequest()
		defer req.free()
		req.adopt(p, limit, &try, tries[0].Rechecks)
		err = l.finish(ctx, req, limits, l.engine.Ask(ctx, &req.Call), d)
	}
	if err != nil && l.cap != nil {
		l.cap.giveBack(&paid)
	}
	return err
}

// takeAll takes a call with any limits.
func (l *Limiter) takeAll(ctx context.Context, limits []Limit, d *Decision) error {
	req := newRequest()
	defer req.free()
	if err := req.fill(ctx, l, limits); err != nil {
		return err
	}
	var paid paidCap
	if l.cap != nil && !decide.Unsatisfiable(req.Charges) {
		if err := l.admitted(ctx, &paid, d); err != nil {
			return err
		}
	}
	err := l.take(ctx, req, limits, d)
	l.waited(ctx, req, err)
	if err != nil && l.cap != nil {
		l.cap.giveBack(&paid)
	}
	return err
}

// take has a call decided, and decided again after a wait where its rules have one. It
// returns when it is the call's turn.
func (l *Limiter) take(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	*d = Decision{}
	var began time.Time
	if req.Waits() {
		began = time.Now()
	}
	waited, err := false, error(nil)
	if l.permits.Waiting() {
		req.Begin(ctx, began, instant())
		waited, err = l.joinLine(ctx, req)
	}
	for {
		if waited && err == nil {
			err = l.renew(ctx, req, limits)
		}
		if err != nil || len(req.Charges) == 0 {
			req.leaveLine(err == nil)
			d.Allowed = err == nil // nothing is left to decide
			return err
		}
		req.Begin(ctx, began, instant())
		if !l.engine.Known(ctx, &req.Call) {
			err = l.engine.Ask(ctx, &req.Call)
		}
		if err == nil && !decide.Admitted(req.Tries) {
			if pause, ok := req.pause(); ok {
				waited, err = true, l.pause(ctx, req, limits, pause)
				continue
			}
		}
		if req.Turn != nil {
			req.leaveLine(err != nil || req.leftOver())
		}
		if err := l.finish(ctx, req, limits, err, d); err != nil {
			return err
		}
		if err := l.awaitTurn(ctx, req, limits); err != nil {
			d.left = true
			_ = l.Refund(ctx, *d, limits...)
			*d = Decision{}
			return err
		}
		return nil
	}
}

// finish answers a call that was decided, unless err says that nobody could.
func (l *Limiter) finish(ctx context.Context, req *request, limits []Limit, err error, d *Decision) error {
	if closed, ok := err.(decide.Closed); ok {
		if l.events.decides() {
			l.events.decided(ctx, req.Charges, req.Tries, req.Arrived, true)
		}
		*d = Decision{Source: SourceFailure}
		return unavailableError{closed.Cause}
	}
	if *d = (Decision{}); err != nil {
		return err
	}
	err = l.answer(ctx, req.Charges, req.Tries, req.Arrived, d)
	exceed(ctx, req.Charges, req.Tries)
	if d.isCharged() {
		page, receipt := req.Page, req.Receipt
		if page == nil {
			page, receipt = req.receipts.Issue()
		}
		l.issue(d, l.mark(d, limits), page, receipt)
		for i := range req.Tries {
			if c := &req.Tries[i]; c.Algorithm == terms.Permits && c.At != 0 {
				l.permits.Hold(req.Charges[i].By(c), c)
			}
		}
	}
	return err
}

// answer fills in an empty decision, tells everybody of it who wants to know, and returns
// its caller's error. It keeps nothing of what it is given.
func (l *Limiter) answer(ctx context.Context, charges []decide.Charge, tries []terms.Charge, arrived time.Duration, d *Decision) error {
	tightest := d.fill(charges, tries)
	if l.events.decides() {
		l.events.decided(ctx, charges, tries, arrived, false)
	}
	if l.events.keys && d.Source != SourceProcess {
		l.keysDenied(ctx, charges, tries)
	}
	for i := range tries {
		if c := &tries[i]; !c.Allowed && c.Shadow {
			p := charges[i].By(c)
			l.events.log.shadowDenied(ruleOf(p), charges[i].Cost, &Decision{Source: d.Source, Limit: p.Capacity, RetryAfter: c.RetryAfter, Blocked: c.Blocked}, arrived)
		}
	}
	if !d.Allowed {
		return l.events.log.deny(ruleOf(charges[tightest].Plan), charges[tightest].Cost, d, arrived)
	}
	return nil
}
