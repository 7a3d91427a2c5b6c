package plan

import (
	"cmp"
	"sync/atomic"
	"unsafe"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Plans finds what limits mean now: as declared, with the overrides in force, scaled by the
// load. Its exported fields are set before it is used. It is safe for concurrent use.
type Plans struct {
	// Namespace starts the keys of all rules.
	Namespace string
	// Fail is the failure policy of rules that have none of their own.
	Fail rule.FailurePolicy
	// Replicas is how many processes share the limits.
	Replicas int64
	// Reached is told of shares that are reached, unless it is nil.
	Reached func(terms.Reached)
	// NewPlan is told of each new plan, which is complete, before any call has it.
	NewPlan func(*Plan)
	// CallAfterClose is told of each call after Close.
	CallAfterClose func()
	// Factors follow the load.
	Factors Factors
	// Samples are what calls of each rule have shown.
	Samples findings.Map[*rule.Rule, findings.Sample]

	overrides atomic.Pointer[OverrideSet] // nil: nothing is ever overridden
	table     Table
	closed    atomic.Bool
}

// Plan returns the plan for a limit of a call, and whether its rule is switched on. The error is
// [rule.ErrInvalidLimit]. A plan that comes with an error names the rule that is wrong.
func (s *Plans) Plan(limit *rule.Limit) (p *Plan, on bool, err error) {
	if r := limit.Rule; s.overrides.Load() == nil && r != nil && r.Adaptive == nil { // which change nothing
		k := Key{r, limit.Max, rule.Engine.PeriodOf(limit)}
		if p = s.table.Find(k, k.Hash()); p != nil && p.takes(limit.Cost) {
			return p, true, nil
		}
	}
	r, max, on := s.applyOverrides(limit)
	if s.Closed() {
		s.CallAfterClose()
	}
	if !on {
		return nil, false, nil
	}
	p, err = s.planFor(limit, r, max)
	if p != nil && p.Sample != nil && !p.Sample.Met.Load() {
		p.Sample.Met.Store(true)
	}
	return p, true, err
}

// takes reports whether nothing is to be said about a call with a cost.
func (p *Plan) takes(cost int64) bool {
	return p.Err == nil && 0 <= cost && cost <= p.Most && (p.Sample == nil || p.Sample.Met.Load())
}

// KeyIn returns the key of a call whose parts are no longer than Plain. The array may be
// on its caller's stack. It takes half the time of AppendKey.
//
//go:noinline
func (p *Plan) KeyIn(array *[terms.ShortKey]byte, parts []byte) []byte {
	if len(parts) == 0 {
		return p.Whole
	}
	return append(append(append(array[:0], p.Start...), parts...), p.Tag...)
}

// ForHold returns the plan for a hold on the key of a limit, or for what a peer has said about it,
// also if its rule is switched off. Where the max is 0 and nobody is admitted it is that of 1.
func (s *Plans) ForHold(limit *rule.Limit) (*Plan, error) {
	r, most, _ := s.applyOverrides(limit)
	return s.planFor(limit, r, max(1, most))
}

// Charged returns the plan for a limit that was charged, also if its rule is switched off by
// now, or at a max that no call could have any more.
func (s *Plans) Charged(limit *rule.Limit) (*Plan, error) {
	r, max, _ := s.applyOverrides(limit)
	p, err := s.planFor(limit, r, max)
	if err != nil && r != nil && r.Lapses() {
		// The call's own max may be invalid, which an override has replaced before.
		if err = rule.Engine.CheckCall(r, 1, limit.Cost); err == nil {
			return s.find(limit.Rule, Key{r, limit.Cost, rule.Engine.PeriodOf(limit)}), nil
		}
	}
	if err == nil && p.Max == 0 && !p.Numbers.plain().Is(algorithm.Resets) {
		return s.AtMax(p, 1), nil
	}
	return p, err
}

// WindowInForce returns the window in force, in microseconds, for a key that was charged by a plan. That of a period of
// the calendar is the plan's.
func (s *Plans) WindowInForce(p *Plan, key []byte) int64 {
	overrides := s.overrides.Load()
	if overrides == nil || p.Numbers.Period != nil {
		return p.Terms.Window
	}
	e := overrides.Effective(p.Declared)
	if e.Keys() > 0 {
		e = e.Lookup(key[len(p.Start) : len(key)-len(p.Tag)])
	}
	return NumbersOf(e.Rule).Window().Microseconds()
}

// AtMax returns the plan for calls with another max than those of a plan.
func (s *Plans) AtMax(p *Plan, max int64) *Plan {
	return s.find(p.Declared, Key{p.Rule, max, p.Period})
}

// Label returns a plan that names the key of a limit, and nothing more: it may have an error.
func (s *Plans) Label(limit *rule.Limit) *Plan {
	r, _, _ := s.applyOverrides(limit)
	return s.find(limit.Rule, Key{r, r.Max, nil})
}

// applyOverrides returns the rule and the max of a limit with the overrides in force, and false if
// they switch the rule off.
func (s *Plans) applyOverrides(limit *rule.Limit) (r *rule.Rule, max int64, on bool) {
	overrides := s.overrides.Load()
	if overrides == nil || limit.Rule == nil {
		return limit.Rule, limit.Max, true
	}
	e := overrides.Effective(limit.Rule)
	if e.Keys() > 0 {
		e = e.Lookup(rule.Engine.PartsOf(limit).Bytes())
	}
	if e.Max == Unset {
		return e.Rule, limit.Max, !e.Off
	}
	return e.Rule, e.Max, !e.Off
}

// planFor returns the plan for a limit whose rule and max are those with the overrides in force.
func (s *Plans) planFor(limit *rule.Limit, r *rule.Rule, max int64) (p *Plan, err error) {
	if r == nil {
		return nil, rule.Engine.CheckPrefix(r)
	}
	p = s.find(limit.Rule, Key{r, max, rule.Engine.PeriodOf(limit)})
	if p.Err != nil || limit.Cost < 0 {
		return p, rule.Engine.CheckCall(r, max, limit.Cost)
	}
	if p.Adapts && max > 0 {
		if factor := s.Factors.Follow(limit.Rule); factor != 1 {
			p = s.AtMax(p, p.Numbers.Scale(max, limit.Cost, factor))
		}
	}
	if limit.Cost > p.Most && limit.Cost <= p.Capacity {
		return p, rule.Engine.Invalid(r, p.Numbers.CheckCost(p.Max, limit.Cost))
	}
	return p, nil
}

// find returns the plan of a key, for a rule as it was declared.
func (s *Plans) find(declared *rule.Rule, k Key) *Plan {
	if p := s.table.Find(k, k.Hash()); p != nil {
		return p
	}
	p := &Plan{Key: k, Declared: declared, Numbers: NumbersOf(k.Rule), Err: rule.Engine.CheckCall(k.Rule, k.Max, 1),
		Adapts: Adapts(k.Rule), Fail: s.policy(k.Rule), Sample: s.Samples.Made(declared)}
	if k.Period != nil {
		p.Numbers.Period = k.Period
	}
	p.Name, p.Start, p.Reached = k.Rule.Name, Start(s.Namespace, k.Rule), s.Reached
	s.NewPlan(p.Complete(s.Replicas))
	if !s.Closed() {
		s.table.Add(p)
	}
	return p
}

// Adapts reports whether load scales a rule.
func Adapts(r *rule.Rule) bool { return r != nil && r.Adaptive != nil }

// policy returns the failure policy of a rule. A shadow limit refuses nobody, so it never fails
// closed.
func (s *Plans) policy(r *rule.Rule) rule.FailurePolicy {
	policy := cmp.Or(r.Fail, s.Fail, rule.FailOpen)
	if policy > rule.FailLocal || policy == rule.FailClosed && !r.Mode.Refuses() {
		policy = rule.FailOpen
	}
	return policy
}

// Overrides returns those in force, or nil if there never are any.
func (s *Plans) Overrides() *OverrideSet { return s.overrides.Load() }

// Override puts overrides in force.
func (s *Plans) Override(next *OverrideSet) {
	if before := s.overrides.Swap(next); before != nil {
		before.markReplaced()
	}
	s.table.Clear()
}

// Close keeps no more plans, and reports whether it is the first.
func (s *Plans) Close() (first bool) {
	first = !s.closed.Swap(true)
	s.table.Clear()
	return first
}

// Closed reports whether there was a Close.
func (s *Plans) Closed() bool { return s.closed.Load() }

// Hash returns a hash of which the low bits differ for most rules, maxima and periods. It is
// good enough for a table that may forget a plan, and takes a tenth of the time.
func (k Key) Hash() uint64 {
	const golden = 0x9E3779B97F4A7C15 // see Knuth, The Art of Computer Programming 3, 6.4
	return (uint64(uintptr(unsafe.Pointer(k.Rule))) + uint64(k.Max)<<32 + uint64(uintptr(unsafe.Pointer(k.Period)))<<8) * golden >> 40
}

// Find returns the plan of a key, of which it is told the hash, or nil.
func (t *Table) Find(k Key, hash uint64) *Plan {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	for i := range uint64(slotChoices) {
		if p := slotAt(*slots, hash, i).Load(); p == nil || p.Key == k {
			return p
		}
	}
	return nil
}

func slotAt(slots []slot, hash, i uint64) *slot {
	return &slots[(hash+i)&uint64(len(slots)-1)]
}
