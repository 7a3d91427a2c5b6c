package runtime

import (
	"hash/maphash"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A plan is what a limiter has found out about a rule and one max of it, so that not
// every call finds it out again. It never changes.
type plan struct {
	planKey
	terms terms.Terms
	// most is the highest cost of a call on the fast path; 0: the rule needs the
	// general path.
	most     int64
	capacity int64
	name     string        // of the rule
	start    string        // of the rule's keys
	tag      string        // ends them
	nameHash uint64        // see Limit.mark
	made     time.Duration // an instant
}

// planOf returns the plan for a limit that is in force. It returns nil if there is
// none, and the call needs the general path.
func (l *Limiter) planOf(limit *Limit) *plan {
	rule, max := limit.rule, limit.max
	if rule == nil {
		return nil
	}
	if l.overrides.Load() != nil {
		on := true
		if rule, max, on = l.overridden(limit); !on {
			return nil
		}
	}
	if rule.Adaptive != nil { // Its scaled max has a plan, if its own is valid.
		if max <= 0 || rule.check(max, limit.cost) != nil {
			return nil
		}
		max = l.scaled(limit.rule, rule, max, limit.cost)
	}
	k := planKey{rule, max}
	hash := k.hash()
	if p := l.plans.find(k, hash); p != nil {
		return p
	}
	return l.plans.add(k, hash, func() *plan { return newPlan(k, l.namespace, l.seed) })
}

// newPlan makes the plan of a rule.
func newPlan(k planKey, namespace string, seed maphash.Seed) *plan {
	p, rule := &plan{planKey: k}, k.rule
	if rule.Wait > 0 || rule.Mode != Enforce || k.max <= 0 || rule.check(k.max, 1) != nil {
		return p
	}
	rule.setTerms(&p.terms, k.max, 0)
	p.capacity, p.name, p.tag = rule.capacity(k.max), rule.Name, rule.keyTag()
	p.nameHash = maphash.String(seed, p.name)
	p.most = min(p.capacity, countings[p.terms.Algorithm].cost)
	key := appendKey(nil, namespace, rule, new(Key))
	p.start = string(key[:len(key)-len(p.tag)])
	return p
}

// takes reports whether the fast path may decide a limit, under which the plan is in
// force.
func (p *plan) takes(limit *Limit) bool {
	return limit.cost > 0 && limit.cost <= p.most && limit.key.rare == nil &&
		len(p.start)+int(limit.key.n)+len(p.tag) <= fastKey
}

// key returns the whole Redis key of a limit that the plan takes.
func (p *plan) key(array *[fastKey]byte, k *Key) []byte {
	n := copy(array[:], p.start)
	n += copy(array[n:], k.inline[:k.n])
	if p.tag != "" {
		n += copy(array[n:], p.tag)
	}
	return array[:n]
}

// charge returns a charge that was planned, for those who are told of it.
func (p *plan) charge(c *terms.Charge) Charge {
	return Charge{Rule: p.rule, Max: p.max, Cost: c.Cost, Result: Result(c.Result)}
}
