package decide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Plan turns limits into charges by what holds now. It leaves out what needs no decision: a
// limit that is switched off, or at no cost if no key can be blocked or held, one whose key is
// invalid if its rule admits that, and a shadow limit that is invalid, could never admit the
// call or has the key of another limit. The error is [rule.ErrInvalidLimit], or that of an
// invalid key if the rule refuses those.
func (e *Engine) Plan(ctx context.Context, c *Call, limits []rule.Limit) error {
	if len(limits) > rule.MaxLimits {
		return fmt.Errorf("%w: %d limits on one call, the maximum is %d", rule.ErrInvalidLimit, len(limits), rule.MaxLimits)
	}
	c.Clear()
	c.engine, c.overrides = e, e.Plans.Overrides()
	for i := range limits {
		if err := e.add(ctx, c, &limits[i], uint8(i)); err != nil {
			return err
		}
	}
	return nil
}

// silent reports whether nobody wants to hear what is wrong with the limits: nothing is
// decided, or it was said before.
func (c *Call) silent() bool { return c.Operation == Peek || c.State != Planned }

// add adds the charge for a limit, unless it needs no decision.
func (e *Engine) add(ctx context.Context, c *Call, limit *rule.Limit, index uint8) error {
	p, on, err := e.Plans.Plan(limit)
	if err != nil {
		if p != nil && p.Terms.Shadow && c.Operation != Peek {
			e.leaveOut(ctx, c, p, err)
			return nil
		}
		return err
	}
	if !on {
		return nil
	}
	if limit.Cost == 0 && !c.silent() && p.Sample != nil && p.Sample.Free() {
		e.Events.Log.Find(report.NothingCharged, p.Name, "")
	}
	if limit.Cost == 0 && !p.RefusesAll() {
		return nil
	}
	if p.Terms.Shadow && c.Operation != Peek {
		if err := e.PauseCause(p, clock.Now()); err != nil {
			e.leaveOut(ctx, c, p, err)
			return nil
		}
	}
	parts := rule.Engine.PartsOf(limit)
	if err := parts.Err(); err != nil {
		if counted, err := e.addInvalid(ctx, c, p, err); !counted {
			return err
		}
	}
	charge := Charge{Plan: p, Cost: limit.Cost, Limits: 1 << index, Max: limit.Max,
		EmptyPart: parts.HasEmpty(), InvalidKey: parts.Err() != nil}
	if charge.EmptyPart && !c.silent() && e.Events.Log.First(p.Declared, report.EmptyPart) { // meant, or wrong for every call
		e.Events.Log.Find(report.EmptyPart, p.Name, "")
	}
	if p.Terms.Shadow && p.Unsatisfiable(limit.Cost) {
		if !c.silent() {
			c.Unsatisfiable = append(c.Unsatisfiable, charge)
		}
		return nil
	}
	if err := e.addTenancy(c, &charge, limit); err != nil {
		if p.Terms.Shadow && c.Operation != Peek {
			e.leaveOut(ctx, c, p, err)
			return nil
		}
		return err
	}
	charge.Key = c.Key(p, parts.Bytes())
	if p.Rule.Ledger == rule.LedgerOn && p.Hashes(parts.Bytes()) {
		return e.leaveKeyOut(ctx, c, p, errUnbilled)
	}
	if same := e.put(c, charge); same != nil {
		return e.join(same, &charge)
	}
	return nil
}

// addTenancy fills in for whom a limit is charged that is divided.
func (e *Engine) addTenancy(c *Call, o *Charge, limit *rule.Limit) error {
	name, weight := rule.Engine.PartsOf(limit).Tenant()
	divided := limit.Rule.Headroom != 0
	if divided && weight != 0 {
		weight = c.overrides.Weight(limit.Rule, name, weight)
	}
	switch {
	case !divided && weight == 0:
	case !divided:
		return rule.Engine.Invalid(limit.Rule, errors.New("the limit has a share, and its rule divides nothing: give the rule a Headroom, or leave WithShare out"))
	case weight == 0:
		return rule.Engine.Invalid(limit.Rule, errors.New("the rule has a Headroom, and the limit is of no share: say by WithShare whose it is"))
	case weight > rule.MaxWeight:
		if !c.silent() {
			e.Events.Log.Find(report.NoWeight, limit.Rule.Name, "")
		}
		return rule.Engine.Invalid(limit.Rule, fmt.Errorf("the weight of a share is not between 1 and %d", rule.MaxWeight))
	case o.Plan.Divided():
		o.Tenancy = c.tenancy(name, weight)
	}
	return nil
}

// leaveOut reports why a limit in shadow mode is left out.
func (e *Engine) leaveOut(ctx context.Context, c *Call, p *plan.Plan, err error) {
	if !c.silent() {
		e.failed(ctx, p, p.Fail, err)
	}
}

// sharedKey reports that a limit in shadow mode is left out because another one has its key.
func (e *Engine) sharedKey(shadow, other *plan.Plan) {
	if e.Events.Log.First(shadow.Declared, report.SharedKey) {
		e.Events.Log.Find(report.SharedKey, shadow.Name, "", slog.String("other", other.Name))
	}
}

// addInvalid reports whether a limit counts whose key is invalid. Otherwise it is left out, or
// there is an error.
func (e *Engine) addInvalid(ctx context.Context, c *Call, p *plan.Plan, err error) (bool, error) {
	if p.Rule.Invalid == rule.InvalidShare && p.Max > 0 {
		if !c.silent() && e.Events.Log.First(p.Declared, report.InvalidKey) {
			e.Events.Log.Find(report.InvalidKey, p.Name, "", slog.Any("error", err))
		}
		return true, nil
	}
	return false, e.leaveKeyOut(ctx, c, p, err)
}

// leaveKeyOut leaves out a limit that counts no such key, in shadow mode or if its rule admits
// invalid keys. Otherwise it returns an error.
func (e *Engine) leaveKeyOut(ctx context.Context, c *Call, p *plan.Plan, err error) error {
	policy := rule.FailClosed
	if p.Rule.Invalid == rule.InvalidAdmit || p.Terms.Shadow {
		policy = rule.FailOpen
	}
	if !c.silent() {
		e.failed(ctx, p, policy, err)
	}
	if policy == rule.FailOpen && c.Operation != Peek {
		return nil
	}
	return fmt.Errorf("rule %q: %w", p.Name, err)
}

// errUnbilled is that of a key by which nobody could be billed.
var errUnbilled = fmt.Errorf("%w: it has more than %d bytes, so redis has a hash of it, which a ledger cannot bill: shorten the key or the prefix, or declare ledger=hash",
	keytext.ErrInvalid, terms.MaxKey)

// join adds o to a charge on the same key. The charge then costs what both do, but no more
// than the limit could ever admit, so that a call may name a key twice. The lower max holds. A max
// of 0 counts nothing, so it may stand beside any other.
func (e *Engine) join(c, o *Charge) error {
	first, other := c.Plan.Rule, o.Plan.Rule
	if c.Plan.Max > 0 && o.Plan.Max > 0 && !c.Plan.Numbers.CountsAs(o.Plan.Numbers) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key, and count in different ways: give them prefixes of their own",
			rule.ErrInvalidLimit, first.Name, other.Name)
	}
	if c.Weight != o.Weight || !bytes.Equal(c.Tenant, o.Tenant) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same key and different shares: a call is of one share of a limit",
			rule.ErrInvalidLimit, first.Name, other.Name)
	}
	if o.Plan.Max < c.Plan.Max {
		c.Plan = e.Plans.AtMax(c.Plan, o.Plan.Max)
	}
	c.Cost = max(c.Cost, o.Cost, min(c.Cost+o.Cost, c.Plan.Capacity))
	c.Limits |= o.Limits
	return nil
}

// put puts a charge behind all others if its limit is in shadow mode, and else before those
// that are. Of charges on one key there is one: a limit in shadow mode is left out. Two that enforce are one
// charge: it returns the one that is there, and has not put in the new one.
func (e *Engine) put(c *Call, charge Charge) (same *Charge) {
	at := 0 // behind the last charge that is not in shadow mode
	for i := 0; i < len(c.Charges); i++ {
		o := &c.Charges[i]
		same := bytes.Equal(o.Key, charge.Key)
		if same && charge.Plan.Terms.Shadow {
			e.sharedKey(charge.Plan, o.Plan)
			return nil
		}
		if same && o.Plan.Terms.Shadow {
			e.sharedKey(o.Plan, charge.Plan)
			c.Charges = slices.Delete(c.Charges, i, i+1)
			i--
			continue
		}
		if same {
			return o
		}
		if !o.Plan.Terms.Shadow || charge.Plan.Terms.Shadow {
			at = i + 1
		}
	}
	c.Charges = slices.Insert(c.Charges, at, charge)
	return nil
}

// limitWait sets how long each charge of a try may still wait when the call has waited since an
// instant.
func (c *Call) limitWait(ctx context.Context, since time.Duration) {
	c.roomCounts = c.roomCounts[:0]
	for i := range c.Tries {
		c.roomCounts = append(c.roomCounts, c.engine.Lines.RoomCount(c.Charges[i].Key))
		t, p := &c.Tries[i], c.Charges[i].Plan
		t.Wait = c.waitLeft(ctx, p, since)
		if p.Queues() {
			t.More = t.Wait.Microseconds()
		}
		c.introduce(&c.Charges[i], t)
	}
	c.Defer()
}

// A claim is what a call asks for that counts as held meanwhile.
type claim struct {
	key  []byte
	cost int64
}

func (c *Call) release() {
	for _, l := range c.claims {
		c.engine.Permits.Release(l.key, l.cost)
	}
	c.claims = c.claims[:0]
}

// introduce has the store know the process of a charge that may wait for permits.
func (c *Call) introduce(o *Charge, t *terms.Charge) {
	if !t.Algorithm.Is(algorithm.Lends) || t.Wait <= 0 || t.Shadow {
		return
	}
	var claimed bool
	t.Param = c.engine.Lines.Process
	if t.More, claimed = c.engine.Permits.Claim(o.Key, t.Cost); claimed {
		c.claims = append(c.claims, claim{o.Key, t.Cost})
	}
	pass, more := c.engine.Lines.Pass(o.Key, o.Max)
	if more {
		t.Param = -t.Param
	}
	if pass && t.More == 0 {
		t.More = -t.Max
	}
}

// Defer has the store leave all charges beside a queue for the call's turn, unless that is now.
func (c *Call) Defer() {
	for i := 0; c.enforcesQueue() && i < len(c.Tries); i++ {
		t := &c.Tries[i]
		t.Deferred = t.Shadow || !t.Is(algorithm.Queues)
	}
}

// waitLeft returns how long a try may wait by a plan: the rest of its Wait, or of the time until the
// context's deadline if that is shorter.
func (c *Call) waitLeft(ctx context.Context, p *plan.Plan, since time.Duration) time.Duration {
	left := max(0, p.Wait-(c.Arrived-since))
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, max(0, clock.At(deadline)-c.Arrived))
	}
	return left
}

// enforcesQueue reports whether the call waits for its turn in a queue.
func (c *Call) enforcesQueue() bool {
	return slices.ContainsFunc(c.Tries, func(t terms.Charge) bool { return t.Is(algorithm.Queues) && !t.Shadow })
}

// waits reports whether any rule of the call lets it wait.
func (c *Call) waits() bool {
	for i := range c.Charges {
		if c.Charges[i].Plan.Wait > 0 {
			return true
		}
	}
	return false
}

// Tightest returns which charge of a call matters most to the caller: one that refuses comes
// before one that does not, and one in shadow mode comes last.
func Tightest(tries []terms.Charge) (tightest int) {
	for i := 1; i < len(tries); i++ {
		if isTighter(&tries[i], &tries[tightest]) {
			tightest = i
		}
	}
	return tightest
}

func isTighter(c, o *terms.Charge) bool {
	if c.Shadow != o.Shadow {
		return !c.Shadow
	}
	if c.Allowed && o.Allowed {
		return c.Remaining < o.Remaining
	}
	return c.RetryAfter > o.RetryAfter
}
