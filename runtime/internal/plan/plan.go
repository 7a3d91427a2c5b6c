// Package plan says what a limit means now: plain numbers, computed once. A [Plan] never
// changes. When an override or the load changes a rule, other plans are in force.
//
// It is handed limits, a source of overrides and a function that scales a max. [Plans.Plan] is the
// door that every call passes. It promises that no package after it has to compute anything of
// a rule; that the source is asked at every interval by one goroutine at a time, and one that
// hangs or panics is reported and stops nothing; that overrides are applied to each rule once;
// and that nothing comes into force after Close. It never decides a call.
package plan

import (
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Key is what a plan is found by.
type Key struct {
	// Rule is the rule with its overrides.
	Rule *rule.Rule
	// Max is that of the calls.
	Max int64
	// Period is that of the calls, or nil if it is the rule's.
	Period *calendar.Period
}

// A Plan is what a rule means for calls with one max.
type Plan struct {
	Key
	terms.Label
	// Declared is the rule without its overrides.
	Declared *rule.Rule
	// Numbers are what the rule says about counting.
	Numbers Numbers
	// Terms are complete but for the time that a call may wait in a queue.
	Terms terms.Terms
	// Capacity is the highest cost that could ever be admitted.
	Capacity int64
	// Most is the highest cost of a call that a store takes.
	Most int64
	// Err is why no call can be decided, or nil.
	Err error
	// Wait is how long a call may wait for room.
	Wait time.Duration
	// Lease is for how long units that are charged ahead may be used. 0: none are.
	Lease time.Duration
	// Fail is what becomes of charges that no store decides.
	Fail rule.FailurePolicy
	// Share is the plan by which this process alone counts. It is never nil.
	Share *Plan
	// Adapts reports that the load scales the max.
	Adapts bool
	// Plain is up to how long the parts of a key may be of a call that is decided on its
	// caller's stack: one that does not wait and is refused if there is no room. It is -1 if
	// there are no such calls.
	Plain int

	// Sample is what calls of the rule show, or nil.
	Sample *findings.Sample

	// Whole is the key of calls without parts.
	Whole []byte

	createTime time.Duration
}

// Unsatisfiable reports whether no waiting would admit a cost.
func (p *Plan) Unsatisfiable(cost int64) bool { return p.Terms.Max == 0 || cost > p.Capacity }

// RefusesAll reports whether all calls on some key may be refused, whatever they cost: it may
// be blocked or held, or nobody is admitted.
func (p *Plan) RefusesAll() bool {
	return !p.Terms.Shadow && (p.Terms.Max == 0 || p.Terms.Blocks())
}

// Queues reports whether calls wait in a line that they leave evenly spaced.
func (p *Plan) Queues() bool { return p.Terms.Is(algorithm.Queues) }

// Divided reports whether tenants share each key.
func (p *Plan) Divided() bool { return p.Terms.Is(algorithm.Divides) }

// Charge fills in what a store is asked about a call with a key and a cost. The charge
// is new, and set in place: a copy would wait for what was just written.
func (p *Plan) Charge(c *terms.Charge, key []byte, cost int64) {
	c.Terms, c.Label, c.Key, c.Cost = p.Terms, &p.Label, key, cost
}

// Correction returns what is to give back so many units of a charge that was made at a time: its
// Cost is minus those. Units below 0 are charged.
func (p *Plan) Correction(key []byte, charged, units, at, mark int64) (c terms.Charge) {
	p.Charge(&c, key, -units)
	c.Charged, c.At, c.Mark = charged, at, mark
	return c
}

// Complete computes the other fields of a plan from its numbers, for one of so many processes
// that share its limit. Its caller has set the fields before Terms, and Fail, Adapts and Err.
func (p *Plan) Complete(replicas int64) *Plan {
	n, r := p.Numbers, p.Numbers.Rule
	p.Share, p.Wait, p.Terms.Shadow, p.Plain = p, r.Wait, !r.Mode.Refuses(), -1
	if n.plain().Name != "" { // all that a reset needs
		p.Tag, p.Terms.Algorithm, p.Terms.Window = n.Tag(), n.Counted(), n.Window().Microseconds()
	}
	p.Whole = p.AppendKey(nil, nil)
	if p.Err != nil {
		return p
	}
	p.Terms, p.Capacity = n.Terms(p.Max), n.Capacity(p.Max)
	if p.Reached != nil && n.Period != nil {
		p.Terms.Tells = p.Max
		if p.Adapts {
			p.Terms.Tells = 1
		}
	}
	p.Most = min(p.Capacity, n.MostCost())
	if r.Wait == 0 && !p.Terms.Shadow && !p.Divided() {
		p.Plain = max(-1, terms.ShortKey-len(p.Start)-len(p.Tag))
	}
	if n.Leases(p.Max) {
		p.Lease = r.Lease
	}
	if p.Fail == rule.FailLocal && replicas > 1 {
		share := *p
		if r.Burst > 0 {
			less := *r
			less.Burst = max(1, r.Burst/replicas)
			less.Max = max(1, r.Max/replicas)
			rule.Engine.FitHeadroom(&less)
			share.Numbers.Rule = &less
		}
		p.Share = share.WithMax(max(1, p.Max/replicas))
	}
	return p
}

// WithMax returns a copy of a plan, which is in no table, for calls with another max.
func (p *Plan) WithMax(max int64) *Plan {
	q := &Plan{Key: Key{p.Rule, max, p.Period}, Label: p.Label, Declared: p.Declared, Numbers: p.Numbers,
		Adapts: p.Adapts, Fail: p.Fail, Sample: p.Sample}
	q.Err = rule.Engine.CheckCall(q.Numbers.Rule, max, 1)
	return q.Complete(1)
}
