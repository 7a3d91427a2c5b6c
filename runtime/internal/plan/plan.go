// Package plan holds what a rule means for calls with one max: plain numbers, found out
// once. A [Plan] never changes. When an override, the load or the kill switch changes a
// rule, other plans are in force.
//
// It is handed numbers that were checked, and it promises that nobody behind it has to
// read a rule. It never decides anything.
package plan

import (
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Policy says what becomes of a charge that no store decides.
type Policy uint8

const (
	Open   Policy = iota // it is as if it had room
	Closed               // its call is refused
	Local                // this process decides alone
)

// A Key is what a plan is found by.
type Key struct {
	// Rule is the rule with its overrides. Nothing here looks into it.
	Rule unsafe.Pointer
	// Max is that of the calls.
	Max int64
}

// A Plan is what a rule means for calls with one max.
type Plan struct {
	Key
	terms.Label
	// Declared is the rule without its overrides.
	Declared unsafe.Pointer
	// Numbers are what the rule says about counting.
	Numbers Rule
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
	Fail Policy
	// Share is the plan by which this process alone counts. It is never nil.
	Share *Plan
	// Adapts reports that the load scales the max.
	Adapts bool
	// Plain reports that calls have no wait, hold nothing and are denied if there is no
	// room.
	Plain bool
	// NameHash is a hash of the name.
	NameHash uint64

	// Whole is the key of calls without parts.
	Whole []byte

	made time.Duration
}

// Unsatisfiable reports whether no waiting would admit a cost.
func (p *Plan) Unsatisfiable(cost int64) bool { return p.Terms.Max == 0 || cost > p.Capacity }

// Queues reports whether calls wait in a line that they leave evenly spaced.
func (p *Plan) Queues() bool { return p.Terms.Algorithm == terms.Queue }

// Charge fills in what a store is asked about a call with a key and a cost. The charge
// is new, and set in place: a copy would wait for what was just written.
func (p *Plan) Charge(c *terms.Charge, key []byte, cost int64) {
	c.Terms, c.Label, c.Key, c.Cost = p.Terms, &p.Label, key, cost
}

// Units returns a charge that was made at a time, which is to give back so many of its
// units.
func (p *Plan) Units(key []byte, charged, units, at, mark int64) (c terms.Charge) {
	p.Charge(&c, key, -units)
	c.Charged, c.At, c.Mark = charged, at, mark
	return c
}

// Complete finds out what a plan's numbers mean for one of so many processes that share
// its limit. Known is all that is said before Terms, the policy, and why there can be no
// calls.
func (p *Plan) Complete(replicas int64) *Plan {
	n := &p.Numbers
	p.Share, p.Wait, p.Terms.Shadow = p, n.Wait, n.Shadow
	if n.Way < Ways { // all that a reset needs
		p.Tag, p.Terms.Algorithm, p.Terms.Window = n.Tag(), n.Counted(), n.Window.Microseconds()
	}
	p.Whole = p.AppendKey(nil, nil)
	if p.Err != nil {
		return p
	}
	p.Terms, p.Capacity = n.Terms(p.Max), n.Capacity(p.Max)
	p.Most = min(p.Capacity, n.MostCost())
	p.Plain = n.Wait == 0 && !n.Shadow && p.Terms.Algorithm != terms.Permits
	if n.Leases(p.Max) {
		p.Lease = n.Lease
	}
	if p.Fail == Local && replicas > 1 {
		share := *p
		if n.Burst > 0 {
			share.Numbers.Burst = max(1, n.Burst/replicas)
		}
		p.Share = share.AtMax(max(1, p.Max/replicas))
	}
	return p
}

// AtMax returns the plan of one process for calls with another max.
func (p *Plan) AtMax(max int64) *Plan {
	q := &Plan{Key: Key{p.Rule, max}, Label: p.Label, Declared: p.Declared, Numbers: p.Numbers, Adapts: p.Adapts, Fail: p.Fail, NameHash: p.NameHash}
	q.Err = q.Numbers.Check(max, 1)
	return q.Complete(1)
}
