package runtime

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// An Override changes a rule while the program runs. A field that is nil
// leaves the rule as it was declared.
type Override struct {
	// Enabled at false takes the limit away: calls go on uncounted by it.
	Enabled *bool
	// Max is how much is admitted in a window, also where a call brings a max
	// of its own. At 0 nobody is admitted. A burst that the rule declares stays.
	Max *int64
	// Window is the time that the max refers to. Events that were counted in a
	// shorter window before are forgotten when that window is over.
	Window *time.Duration
	// Mode is whether the limit denies calls.
	Mode *Mode
}

// Overrides are all changes to the declared rules.
type Overrides struct {
	// Enabled at false takes all limits away, as [WithEnabled] does. At true
	// or nil the limiter's own switch decides.
	Enabled *bool
	// Rules are the changed rules by their names. A name that no rule has is
	// no error, since rules become known with their first call. The log warns of
	// it after a minute without such a call.
	Rules map[string]Override
}

// An OverrideSource returns the overrides that are to be in force. Package
// runtime/override has two sources: a file, and a hash in Redis.
type OverrideSource interface {
	// Overrides returns all overrides as they are now, and gives up when ctx
	// ends. It is called by one goroutine at a time, and its result is copied
	// before the next call. An error leaves the last good ones in force.
	Overrides(ctx context.Context) (Overrides, error)
}

// An OverrideFunc is a function as an [OverrideSource].
type OverrideFunc func(ctx context.Context) (Overrides, error)

// Overrides calls f.
func (f OverrideFunc) Overrides(ctx context.Context) (Overrides, error) { return f(ctx) }

// clone returns a copy that shares nothing with o.
func (o Overrides) clone() Overrides {
	c := Overrides{Enabled: cloned(o.Enabled)}
	if len(o.Rules) > 0 {
		c.Rules = make(map[string]Override, len(o.Rules))
	}
	for name, of := range o.Rules {
		c.Rules[name] = Override{cloned(of.Enabled), cloned(of.Max), cloned(of.Window), cloned(of.Mode)}
	}
	return c
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// check returns an error that names the first override that fits no rule.
func (o *Overrides) check() error {
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		of := o.Rules[name]
		switch {
		case of.Max != nil && (*of.Max < 0 || *of.Max > MaxCount):
			return fmt.Errorf("override of rule %.80q: max %d is not between 0 and %d", name, *of.Max, int64(MaxCount))
		case of.Window != nil && (*of.Window < MinWindow || *of.Window > MaxWindow):
			return fmt.Errorf("override of rule %.80q: window %v is not between %v and 366 days", name, *of.Window, MinWindow)
		case of.Mode != nil && *of.Mode > Shadow:
			return fmt.Errorf("override of rule %.80q: unknown mode %d", name, *of.Mode)
		}
	}
	return nil
}

// An overrideSet is a set of overrides in force. It applies the overrides to each
// rule once, so that a call costs one lookup.
type overrideSet struct {
	Overrides
	rules ruleTable[effectiveRule]
}

// An effectiveRule is a rule with its overrides applied.
type effectiveRule struct {
	rule *Rule
	off  bool
	max  bool // rule.Max is the max of every call
}

func (s *overrideSet) enabled() bool { return s.Enabled == nil || *s.Enabled }

// effective returns a rule with its overrides applied. A rule that the overrides
// do not fit, and that was unknown when they came into force, stays as declared.
func (s *overrideSet) effective(l *Limiter, declared *Rule) *effectiveRule {
	if found := s.rules.of(declared); found != nil {
		return found
	}
	e, err := s.apply(declared)
	if err != nil {
		e = &effectiveRule{rule: declared}
	}
	if s.rules.keep(declared, e) && err != nil {
		l.overridesRejected(fmt.Errorf("%w; the rule stays as declared", err))
	}
	if found := s.rules.of(declared); found != nil {
		return found // another call may have been first
	}
	return e
}

// apply applies the overrides to a rule. The error names the override that the
// rule does not allow.
func (s *overrideSet) apply(declared *Rule) (*effectiveRule, error) {
	o, ok := s.Rules[declared.Name]
	if !ok {
		return &effectiveRule{rule: declared}, nil
	}
	changed := *declared
	changed.declared = declared
	e := &effectiveRule{rule: &changed, off: o.Enabled != nil && !*o.Enabled, max: o.Max != nil}
	if o.Max != nil {
		changed.Max = *o.Max
	}
	if o.Window != nil {
		changed.Window = *o.Window
	}
	if o.Mode != nil {
		changed.Mode = *o.Mode
	}
	if err := changed.check(changed.Max, 1); err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	return e, nil
}

// next returns the set that follows when o are the overrides. The error names a
// known rule that they do not fit. A rule whose override is unchanged keeps its
// effectiveRule, and with it its remembered denials.
func (s *overrideSet) next(o Overrides) (next *overrideSet, err error) {
	next = &overrideSet{Overrides: o}
	s.rules.all(func(declared *Rule, e *effectiveRule) bool {
		before, was := s.Rules[declared.Name]
		after, is := o.Rules[declared.Name]
		if was != is || !reflect.DeepEqual(before, after) {
			e, err = next.apply(declared)
		}
		if err == nil {
			next.rules.keep(declared, e)
		}
		return err == nil
	})
	return next, err
}
