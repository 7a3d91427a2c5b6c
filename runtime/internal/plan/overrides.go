package plan

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// Overrides are what a source says, in numbers.
type Overrides struct {
	Off    bool                     // all limits
	Rules  map[string]Change        // by the names of rules
	Keys   map[string]*KeyOverrides // of the rules that have any
	Shares map[string]*KeyOverrides // likewise
}

// NewOverrides returns the overrides that rules have by their names, enabled if that is nil. Keys that are
// as they were are those of before. The error names the first override that fits no rule.
func NewOverrides(enabled *bool, rules map[string]rule.Override, before *Overrides) (o Overrides, err error) {
	o = Overrides{enabled != nil && !*enabled, make(map[string]Change, len(rules)), map[string]*KeyOverrides{}, map[string]*KeyOverrides{}}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		r := rules[name]
		if o.Rules[name], err = newChange(rule.KeyOverride{Enabled: r.Enabled, Max: r.Max, Burst: r.Burst, Window: r.Window,
			Mode: r.Mode}); err != nil {
			return o, fmt.Errorf("override of rule %.80q: %w", name, err)
		}
		if len(r.Keys) > 0 {
			o.Keys[name], err = newKeyOverrides(key, before.Keys[name], r.Keys)
		}
		if len(r.Shares) > 0 && err == nil {
			o.Shares[name], err = newKeyOverrides(share, before.Shares[name], r.Shares)
		}
		if err != nil {
			return o, private.Errorf("override of rule %.80q%w", name, err)
		}
	}
	return o, nil
}

// Equal reports whether two say the same. Keys that are equal are one, see [NewOverrides].
func (o *Overrides) Equal(p *Overrides) bool {
	return o.Off == p.Off && maps.Equal(o.Rules, p.Rules) && maps.Equal(o.Keys, p.Keys) && maps.Equal(o.Shares, p.Shares)
}

// Names returns the names of the rules that are overridden, in order.
func (o *Overrides) Names() []string { return slices.Sorted(maps.Keys(o.Rules)) }

// An OverrideSet is overrides in force. It applies them to each rule once, so that a call costs one
// lookup. It is safe for concurrent use.
type OverrideSet struct {
	Overrides
	// reportMisfit is told why overrides do not fit a rule that was unknown when they came into force.
	// It stays as declared.
	reportMisfit func(error)
	rules        findings.Map[*rule.Rule, Effective] // by their declarations

	replacement chan struct{} // closed when others have come into force
	replaceTime time.Duration // the instant of that
}

func NewOverrideSet(o Overrides, misfit func(error)) *OverrideSet {
	return &OverrideSet{Overrides: o, reportMisfit: misfit, replacement: make(chan struct{})}
}

// Replaced returns a channel that is closed when other overrides have come into force. There
// are never any for nil.
func (s *OverrideSet) Replaced() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.replacement
}

// Until returns the instant at which other overrides came into force, or now.
func (s *OverrideSet) Until(now time.Duration) time.Duration {
	select {
	case <-s.Replaced():
		return s.replaceTime
	default:
		return now
	}
}

// markReplaced notes that others are in force from now on.
func (s *OverrideSet) markReplaced() {
	s.replaceTime = clock.Now()
	close(s.replacement)
}

// An Effective is a rule with its overrides applied.
type Effective struct {
	Rule *rule.Rule
	Max  int64 // of every call; Unset: each has its own
	Off  bool

	keys *keyEffects // nil: no key has an override
}

// keyEffects are the overrides of keys of a rule: apart from [Effective], of which there is one
// for each of a hundred thousand keys.
type keyEffects struct {
	*KeyOverrides
	effects []Effective // for each of their changes
}

// Keys returns how many patterns of keys have overrides.
func (e *Effective) Keys() int {
	if e.keys == nil {
		return 0
	}
	return e.keys.Len()
}

// Lookup returns what holds for a key of the rule, which is e if the key has no override.
func (e *Effective) Lookup(key []byte) *Effective {
	if change, found := e.keys.Find(key); found {
		return &e.keys.effects[change]
	}
	return e
}

// All returns e, and then what holds for keys of it in its place.
func (e *Effective) All() iter.Seq[*Effective] {
	return func(yield func(*Effective) bool) {
		if !yield(e) || e.keys == nil {
			return
		}
		for i := range e.keys.effects {
			if !yield(&e.keys.effects[i]) {
				return
			}
		}
	}
}

// Effective returns a rule with the overrides applied, or as declared if they do not fit it, or
// the set is nil.
func (s *OverrideSet) Effective(declared *rule.Rule) *Effective {
	if s == nil {
		return &Effective{Rule: declared, Max: Unset}
	}
	if found := s.rules.Find(declared); found != nil {
		return found
	}
	e, err := s.Apply(declared)
	if err != nil {
		e = &Effective{Rule: declared, Max: Unset}
	}
	if s.rules.Keep(declared, e) && err != nil {
		s.reportMisfit(private.Errorf("%w; the rule stays as declared", err))
	}
	return cmp.Or(s.rules.Find(declared), e) // another call may have been first
}

// Weight returns the weight of a share of a rule, of which a call says another.
func (s *OverrideSet) Weight(of *rule.Rule, share []byte, said uint32) uint32 {
	if s == nil || s.Shares[of.Name] == nil {
		return said
	}
	if change, found := s.Shares[of.Name].Find(share); found {
		return s.Shares[of.Name].changes[change].Weight
	}
	return said
}

// Known returns how many rules the overrides were applied to.
func (s *OverrideSet) Known() int { return s.rules.Len() }

// Unmet returns the overridden names that u says are due, and that no known rule has.
func (s *OverrideSet) Unmet(u *Unmet) []string {
	due := u.Due(s.Names())
	if len(due) == 0 {
		return nil
	}
	known := make(map[string]bool)
	for declared := range s.rules.All() {
		known[declared.Name] = true
	}
	return slices.DeleteFunc(due, func(name string) bool { return known[name] })
}

// Next returns the set that follows when o are the overrides, which is s if they are the same.
// The error names a known rule that they do not fit. A rule whose override is unchanged stays
// what it is, and so do its remembered refusals.
func (s *OverrideSet) Next(o Overrides) (*OverrideSet, error) {
	if s.Equal(&o) {
		return s, nil
	}
	next := NewOverrideSet(o, s.reportMisfit)
	for declared, e := range s.rules.All() {
		name := declared.Name
		before, was := s.Rules[name]
		after, is := o.Rules[name]
		if was != is || before != after || s.Keys[name] != o.Keys[name] || s.Shares[name] != o.Shares[name] {
			var err error
			if e, err = next.Apply(declared); err != nil {
				return nil, err
			}
		}
		next.rules.Keep(declared, e)
	}
	return next, nil
}

// Apply applies the overrides to a rule. The error names the one that the rule does not
// allow.
func (s *OverrideSet) Apply(declared *rule.Rule) (*Effective, error) {
	e := &Effective{Rule: declared, Max: Unset}
	c, is := s.Rules[declared.Name]
	if !is {
		return e, nil
	}
	if c != NoChange {
		e.Rule, e.Max, e.Off = applyChange(declared, c), c.Max, c.Enabled == 0
	}
	if err := e.Rule.Check(); err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	if s.Shares[declared.Name] != nil && declared.Headroom == 0 {
		return nil, fmt.Errorf("override: %w", rule.Engine.Invalid(declared, errors.New("a share has a weight, and the rule divides nothing: give the rule a share, or remove the override")))
	}
	keys := s.Keys[declared.Name]
	if keys == nil {
		return e, nil
	}
	return e, s.applyKeys(e, declared.Headroom, keys)
}

// applyKeys applies the overrides of keys to a rule that has its own applied. Changes with
// one window, mode and burst have one rule, unless the headroom that was declared is another for a key.
func (s *OverrideSet) applyKeys(e *Effective, headroom int64, keys *KeyOverrides) error {
	rules := map[Change]*rule.Rule{}
	e.keys = &keyEffects{keys, make([]Effective, len(keys.Changes()))}
	for i, c := range keys.Changes() {
		one := Effective{Max: e.Max, Off: e.Off}
		of := Change{Max: Unset, Burst: c.Burst, Window: c.Window, Mode: c.Mode, Enabled: Unset}
		base := *e.Rule
		if base.Headroom != headroom && (c.Max != Unset || c.Burst != 0) {
			of.Max, base.Headroom = c.Max, headroom
		}
		if one.Rule = rules[of]; one.Rule == nil {
			one.Rule = applyChange(&base, of)
			rules[of] = one.Rule
		}
		if c.Enabled != Unset {
			one.Off = c.Enabled == 0
		}
		max := one.Rule.Max
		if c.Max != Unset {
			one.Max, max = c.Max, c.Max
		}
		if err := rule.Engine.CheckCall(one.Rule, max, 1); err != nil {
			return private.Errorf("override of key %.80q: %w", private.Text(keys.Pattern(uint32(i))), err)
		}
		e.keys.effects[i] = one
	}
	return nil
}

func applyChange(r *rule.Rule, c Change) *rule.Rule {
	changed := *r
	if c.Burst != 0 {
		changed.Burst = c.Burst
	}
	if c.Max != Unset {
		changed.Max = c.Max
	}
	if c.Max != Unset || c.Burst != 0 {
		rule.Engine.FitHeadroom(&changed)
	}
	if c.Mode != Unset {
		changed.Mode = rule.Mode(c.Mode)
	}
	if c.Window != 0 {
		changed.Window = c.Window
	}
	if changed.Period == rule.NoPeriod && changed.Window != r.Window && changed.Lease >= changed.Window {
		changed.Lease = 0
	}
	return &changed
}
