package runtime

import (
	"cmp"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// planOf returns the plan for a limit that is in force: its rule and max, changed by the
// overrides in force and scaled by the load. It reports false if the rule is switched
// off. The error is [ErrInvalidLimit]; there may be a plan nevertheless, for the rule that
// cannot be.
func (l *Limiter) planOf(limit *Limit) (p *plan.Plan, on bool, err error) {
	rule, max := limit.rule, limit.max
	if l.overrides.Load() != nil {
		if rule, max, on = l.overridden(limit); !on {
			return nil, false, nil
		}
	}
	p, err = l.planFor(limit, rule, max)
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
		max = l.scaled(limit.rule, p, max, limit.cost)
		p = l.plan(rule, max, limit.period)
	}
	if limit.cost > p.Most && limit.cost <= p.Capacity {
		return p, rule.invalid(p.Numbers.CheckCost(max, limit.cost))
	}
	return p, nil
}

// overridden returns the rule and the max of a limit with the overrides in force,
// and false if they switch the rule off.
func (l *Limiter) overridden(limit *Limit) (*Rule, int64, bool) {
	rule, max := limit.rule, limit.max
	o := l.overrides.Load()
	if o == nil || rule == nil {
		return rule, max, true
	}
	e := o.Of(rule)
	if e.Keys() > 0 {
		e = e.For(limit.key.bytes())
	}
	if e.Max != override.Unset {
		max = e.Max
	}
	return e.Rule, max, !e.Off
}

// plan returns the plan for a rule with its overrides, one max of it, and a period if it is
// not the rule's.
func (l *Limiter) plan(rule *Rule, max int64, period *calendar.Period) *plan.Plan {
	k := plan.Key{Rule: unsafe.Pointer(rule), Max: max, Period: period}
	p := l.plans.Find(k, k.Hash())
	if p == nil {
		p = l.compile(k)
		l.plans.Add(p)
	}
	return p
}

// compile makes a plan.
func (l *Limiter) compile(k plan.Key) *plan.Plan {
	rule := (*Rule)(k.Rule)
	p := &plan.Plan{Key: k, Declared: unsafe.Pointer(rule.declaration()), Numbers: rule.numbers(), Err: rule.check(k.Max, 1),
		Adapts: rule.Adaptive != nil, Fail: l.policy(rule)}
	if k.Period != nil {
		p.Numbers.Period = k.Period
	}
	p.Name, p.Start = rule.Name, rule.keyStart(l.namespace)
	if store, may := l.store.(keeper); may {
		store.keeps(rule)
	}
	return p.Complete(l.replicas)
}

// ruleOf returns the rule that a plan is of, with its overrides.
func ruleOf(p *plan.Plan) *Rule { return (*Rule)(p.Rule) }

// policy returns the failure policy of a rule. A shadow limit refuses nobody, so
// it never fails closed.
func (l *Limiter) policy(r *Rule) plan.Policy {
	policy := cmp.Or(r.Fail, l.fail, FailOpen)
	if policy > FailLocal || policy == FailClosed && !r.Mode.Denies() {
		policy = FailOpen
	}
	return plan.Policy(policy)
}
