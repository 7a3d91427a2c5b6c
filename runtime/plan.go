package runtime

import (
	"cmp"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
)

// planOf returns the plan for a limit that is in force: its rule and max, changed by the
// overrides in force and scaled by the load. It reports false if the rule is switched off. The
// error is [ErrInvalidLimit]; there may be a plan nevertheless, for the rule that cannot be.
func (l *Limiter) planOf(limit *Limit) (p *plan.Plan, on bool, err error) {
	if l.closed.Load() {
		l.events.log.Find(report.Closed, "", "")
	}
	rule, max := limit.rule, limit.max
	if l.overrides.Load() != nil {
		if rule, max, on = l.overridden(limit); !on {
			return nil, false, nil
		}
	}
	p, err = l.planFor(limit, rule, max)
	if p != nil && p.Sample != nil && !p.Sample.Met.Load() {
		p.Sample.Met.Store(true)
	}
	return p, true, err
}

// planFor is planOf for the rule and the max that overrides have left of a limit.
func (l *Limiter) planFor(limit *Limit, rule *Rule, max int64) (p *plan.Plan, err error) {
	if rule == nil {
		return nil, rule.checkPrefix()
	}
	p = l.plan(rule, max, limit.period)
	if p.Err != nil || limit.cost < 0 {
		return p, rule.check(max, limit.cost)
	}
	if p.Adapts && max > 0 {
		if factor := l.factors.Follow(limit.rule); factor != 1 {
			max = p.Numbers.Scale(max, limit.cost, factor)
			p = l.plan(rule, max, limit.period)
		}
	}
	if limit.cost > p.Most && limit.cost <= p.Capacity {
		return p, rule.invalid(p.Numbers.CheckCost(max, limit.cost))
	}
	return p, nil
}

// overridden returns the rule and the max of a limit with the overrides in force, and false if
// they switch the rule off.
func (l *Limiter) overridden(limit *Limit) (*Rule, int64, bool) {
	rule, max := limit.rule, limit.max
	o := l.overrides.Load()
	if o == nil || rule == nil {
		return rule, max, true
	}
	e := o.Effective(rule)
	if e.Keys() > 0 {
		e = e.For(limit.key.bytes())
	}
	if e.Max != override.Unset {
		max = e.Max
	}
	return e.Rule, max, !e.Off
}

// plan returns the plan for a rule with its overrides, one max of it, and a period if it is not
// the rule's.
func (l *Limiter) plan(rule *Rule, max int64, period *calendar.Period) *plan.Plan {
	k := plan.Key{Rule: unsafe.Pointer(rule), Max: max, Period: period}
	if p := l.plans.Find(k, k.Hash()); p != nil {
		return p
	}
	p := &plan.Plan{Key: k, Declared: unsafe.Pointer(rule.declaration()), Numbers: rule.numbers(), Err: rule.check(max, 1),
		Adapts: rule.adapts(), Fail: l.policy(rule), Sample: l.sample(rule)}
	if period != nil {
		p.Numbers.Period = period
	}
	p.Name, p.Start, p.Reached = rule.Name, rule.keyStart(l.namespace), l.events.reached()
	l.redis.checkDurability(rule)
	p.Complete(l.replicas)
	if !l.closed.Load() { // every call makes its own then, and says that it comes late
		l.plans.Add(p)
	}
	return p
}

// policy returns the failure policy of a rule. A shadow limit refuses nobody, so it never fails
// closed.
func (l *Limiter) policy(r *Rule) plan.Policy {
	policy := cmp.Or(r.Fail, l.fail, FailOpen)
	if policy > FailLocal || policy == FailClosed && !r.Mode.Denies() {
		policy = FailOpen
	}
	return plan.Policy(policy)
}
