package override

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
)

// Overrides are what a source says, in numbers.
type Overrides struct {
	Off   bool              // all limits
	Rules map[string]Change // by the names of rules
	Keys  map[string]*Keys  // of the rules that have any
}

// Equal reports whether two say the same. Keys that are equal are one, see [NewKeys].
func (o *Overrides) Equal(p *Overrides) bool {
	return o.Off == p.Off && maps.Equal(o.Rules, p.Rules) && maps.Equal(o.Keys, p.Keys)
}

// Names returns the names of the rules that are overridden, in order.
func (o *Overrides) Names() []string { return slices.Sorted(maps.Keys(o.Rules)) }

// Functions are what is known of rules of a type.
type Functions[R any] struct {
	Name func(*R) string
	// Changed returns a copy of a rule with a change.
	Changed func(*R, Change) *R
	// Check returns why calls with a max cannot be decided by a rule, or nil. An Unset max is
	// the rule's.
	Check func(r *R, max int64) error
	// Misfit is told why overrides do not fit a rule that was unknown when they came into
	// force. It stays as declared.
	Misfit func(error)
}

// A Set is overrides in force. It applies them to each rule once, so that a call costs one
// lookup. It is safe for concurrent use.
type Set[R any] struct {
	Overrides
	of    *Functions[R]
	rules bounded.Map[*R, Effective[R]] // by their declarations

	replaced chan struct{} // closed when others have come into force
	until    time.Duration // the instant of that
}

// NewSet returns the set of some overrides.
func NewSet[R any](o Overrides, of *Functions[R]) *Set[R] {
	return &Set[R]{Overrides: o, of: of, replaced: make(chan struct{})}
}

// Replaced returns a channel that is closed when other overrides have come into force. There
// are never any for nil.
func (s *Set[R]) Replaced() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.replaced
}

// Until returns the instant at which other overrides came into force, or now.
func (s *Set[R]) Until(now time.Duration) time.Duration {
	select {
	case <-s.Replaced():
		return s.until
	default:
		return now
	}
}

// Replace notes that others are in force from now on.
func (s *Set[R]) Replace() {
	s.until = clock.Now()
	close(s.replaced)
}

// An Effective is a rule with its overrides applied.
type Effective[R any] struct {
	Rule *R
	Max  int64 // of every call; Unset: each has its own
	Off  bool

	keys *keyed[R] // nil: no key has an override
}

// keyed are the overrides of keys of a rule: apart from [Effective], of which there is one
// for each of a hundred thousand keys.
type keyed[R any] struct {
	*Keys
	each []Effective[R] // for each of their changes
}

// Keys returns how many patterns of keys have overrides.
func (e *Effective[R]) Keys() int {
	if e.keys == nil {
		return 0
	}
	return e.keys.Len()
}

// For returns what holds for a key of the rule, which is e if the key has no override.
func (e *Effective[R]) For(key []byte) *Effective[R] {
	if change, found := e.keys.Find(key); found {
		return &e.keys.each[change]
	}
	return e
}

// All returns e, and then what holds for keys of it in its place.
func (e *Effective[R]) All() iter.Seq[*Effective[R]] {
	return func(yield func(*Effective[R]) bool) {
		if !yield(e) || e.keys == nil {
			return
		}
		for i := range e.keys.each {
			if !yield(&e.keys.each[i]) {
				return
			}
		}
	}
}

// Effective returns a rule with the overrides applied, or as declared if they do not fit it, or
// the set is nil.
func (s *Set[R]) Effective(declared *R) *Effective[R] {
	if s == nil {
		return &Effective[R]{Rule: declared, Max: Unset}
	}
	if found := s.rules.Find(declared); found != nil {
		return found
	}
	e, err := s.Apply(declared)
	if err != nil {
		e = &Effective[R]{Rule: declared, Max: Unset}
	}
	if s.rules.Keep(declared, e) && err != nil {
		s.of.Misfit(private.Errorf("%w; the rule stays as declared", err))
	}
	return cmp.Or(s.rules.Find(declared), e) // another call may have been first
}

// Known returns how many rules the overrides were applied to.
func (s *Set[R]) Known() int { return s.rules.Len() }

// Unmet returns the overridden names that u says are due, and that no known rule has.
func (s *Set[R]) Unmet(u *Unmet) []string {
	due := u.Due(s.Names())
	if len(due) == 0 {
		return nil
	}
	known := make(map[string]bool)
	for declared := range s.rules.All() {
		known[s.of.Name(declared)] = true
	}
	return slices.DeleteFunc(due, func(name string) bool { return known[name] })
}

// Next returns the set that follows when o are the overrides, which is s if they are the same.
// The error names a known rule that they do not fit. A rule whose override is unchanged stays
// what it is, and so do its remembered denials.
func (s *Set[R]) Next(o Overrides) (*Set[R], error) {
	if s.Equal(&o) {
		return s, nil
	}
	next := NewSet(o, s.of)
	for declared, e := range s.rules.All() {
		name := s.of.Name(declared)
		before, was := s.Rules[name]
		after, is := o.Rules[name]
		if was != is || before != after || s.Keys[name] != o.Keys[name] {
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
func (s *Set[R]) Apply(declared *R) (*Effective[R], error) {
	e := &Effective[R]{Rule: declared, Max: Unset}
	c, is := s.Rules[s.of.Name(declared)]
	if !is {
		return e, nil
	}
	if c != Nothing {
		e.Rule, e.Max, e.Off = s.of.Changed(declared, c), c.Max, c.Enabled == 0
	}
	if err := s.of.Check(e.Rule, Unset); err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	keys := s.Keys[s.of.Name(declared)]
	if keys == nil {
		return e, nil
	}
	return e, s.applyKeys(e, keys)
}

// applyKeys applies the overrides of keys to a rule that has its own applied. Changes with
// one window and mode have one rule.
func (s *Set[R]) applyKeys(e *Effective[R], keys *Keys) error {
	rules := map[Change]*R{}
	e.keys = &keyed[R]{keys, make([]Effective[R], len(keys.Changes()))}
	for i, c := range keys.Changes() {
		changed := Effective[R]{Max: e.Max, Off: e.Off}
		of := Change{Max: Unset, Window: c.Window, Mode: c.Mode, Enabled: Unset}
		if changed.Rule = rules[of]; changed.Rule == nil {
			changed.Rule = s.of.Changed(e.Rule, of)
			rules[of] = changed.Rule
		}
		if c.Enabled != Unset {
			changed.Off = c.Enabled == 0
		}
		if c.Max != Unset {
			changed.Max = c.Max
		}
		if err := s.of.Check(changed.Rule, c.Max); err != nil {
			return private.Errorf("override of key %.80q: %w", private.Text(keys.Pattern(uint32(i))), err)
		}
		e.keys.each[i] = changed
	}
	return nil
}
