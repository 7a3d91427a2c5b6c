package runtime

import (
	"hash/maphash"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
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
	p = l.plan(rule, max)
	if p.Err != nil || limit.cost < 0 {
		return p, rule.check(max, limit.cost)
	}
	if p.Adapts && max > 0 {
		max = l.scaled(limit.rule, rule, max, limit.cost)
		p = l.plan(rule, max)
	}
	if limit.cost > p.Most && limit.cost <= p.Capacity {
		return p, rule.checkCost(max, limit.cost)
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
	e := o.effective(l, rule)
	if e.keys != nil {
		e = e.keys.ruleFor(e, &limit.key)
	}
	if e.max != ownMax {
		max = e.max
	}
	return e.rule, max, !e.off
}

// found returns the plan for a rule and a max that nothing changes, or nil if there is none
// yet, or something may.
func (l *Limiter) found(rule *Rule, max int64) *plan.Plan {
	if l.overrides.Load() != nil || rule.Adaptive != nil {
		return nil
	}
	k := plan.Key{Rule: unsafe.Pointer(rule), Max: max}
	return l.plans.Find(k, k.Hash())
}

// plan returns the plan for a rule with its overrides, and one max of it.
func (l *Limiter) plan(rule *Rule, max int64) *plan.Plan {
	k := plan.Key{Rule: unsafe.Pointer(rule), Max: max}
	p := l.plans.Find(k, k.Hash())
	if p == nil {
		p = l.compile(k, l.replicas)
		l.plans.Add(p)
	}
	return p
}

// compile makes a plan for one of so many processes.
func (l *Limiter) compile(k plan.Key, replicas int64) *plan.Plan {
	rule := (*Rule)(k.Rule)
	p := &plan.Plan{Key: k, Declared: unsafe.Pointer(rule.declaration()), Adapts: rule.Adaptive != nil, Wait: rule.Wait}
	p.Share, p.Name, p.NameHash = p, rule.Name, maphash.String(l.seed, rule.Name)
	p.Terms.Shadow = !rule.Mode.Denies()
	p.Fail, p.Start = l.policy(rule), rule.keyStart(l.namespace)
	if rule.Algorithm < algorithms { // all that a reset needs
		p.Tag, p.Terms.Algorithm, p.Terms.Window = rule.keyTag(), rule.counted(), rule.Window.Microseconds()
	}
	p.Whole = p.AppendKey(nil, nil)
	if p.Err = rule.check(k.Max, 1); p.Err != nil {
		return p
	}
	rule.setTerms(&p.Terms, k.Max)
	p.Capacity = rule.capacity(k.Max)
	p.Most = min(p.Capacity, countings[p.Terms.Algorithm].cost)
	p.Plain = rule.Wait == 0 && !p.Terms.Shadow && p.Terms.Algorithm != terms.Permits
	if rule.leases(k.Max) {
		p.Lease = rule.Lease
	}
	if p.Fail == plan.Local && replicas > 1 {
		part := *rule
		part.declared = rule.declaration()
		if part.Burst > 0 {
			part.Burst = max(1, part.Burst/replicas)
		}
		p.Share = l.compile(plan.Key{Rule: unsafe.Pointer(&part), Max: max(1, k.Max/replicas)}, 1)
	}
	return p
}

// ruleOf returns the rule that a plan is of, with its overrides.
func ruleOf(p *plan.Plan) *Rule { return (*Rule)(p.Rule) }

// policy returns the failure policy of a rule. A shadow limit refuses nobody, so
// it never fails closed.
func (l *Limiter) policy(r *Rule) plan.Policy {
	policy := r.Fail
	if policy == FailDefault {
		policy = l.fail
	}
	switch {
	case policy == FailLocal:
		return plan.Local
	case policy == FailClosed && r.Mode.Denies():
		return plan.Closed
	}
	return plan.Open
}

// policyOf returns a failure policy by its name for users.
func policyOf(p plan.Policy) FailurePolicy {
	return [...]FailurePolicy{plan.Open: FailOpen, plan.Closed: FailClosed, plan.Local: FailLocal}[p]
}
