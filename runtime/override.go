package runtime

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/stale"
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
	// Keys are changes for single keys, by patterns. A pattern is a key as
	// [Key.String] returns it, or the beginning of keys and a *, as in premium-*.
	// If a key matches several patterns, the key itself is in force, or else the
	// longest pattern. A * that ends a key is written %2A; a * elsewhere in a
	// pattern and an escape that no key has are errors. A key that is too long for Redis
	// may be written as it stands there, %sha256- and its hash. A rule may have a million
	// patterns, of up to 1,024 bytes.
	Keys map[string]KeyOverride
}

// A KeyOverride changes a rule for the keys of a pattern. A field that is nil
// leaves the key what holds for the others: the rule's [Override], or else what is
// declared.
type KeyOverride struct {
	// Enabled at false takes the limit away from these keys; at true they have it
	// though the rule's override takes it away.
	Enabled *bool
	// Max is how much each of these keys is admitted in a window. At 0 it is never
	// admitted.
	Max *int64
	// Window is the time that the max refers to, as in [Override].
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
	// no error, since rules become known by [Limiter.Register] or with their first
	// call. The log warns of it after a minute without either.
	Rules map[string]Override
}

// An OverrideSource returns the overrides that are to be in force. Package
// runtime/override has two sources: a file, and a hash in Redis.
type OverrideSource interface {
	// Overrides returns all overrides as they are now, and gives up when ctx
	// ends. It is called by one goroutine at a time, and its result is copied
	// before the next call. An error leaves the last good ones in force. One that is
	// [ErrInvalidOverrides] says that they were read, and that somebody has to correct
	// them; any other that they could not be read.
	Overrides(ctx context.Context) (Overrides, error)
}

// An OverrideFunc is a function as an [OverrideSource].
type OverrideFunc func(ctx context.Context) (Overrides, error)

// Overrides calls f.
func (f OverrideFunc) Overrides(ctx context.Context) (Overrides, error) { return f(ctx) }

// clone returns a copy without the keys that shares nothing with o.
func (o Overrides) clone() Overrides {
	c := Overrides{Enabled: cloned(o.Enabled)}
	if len(o.Rules) > 0 {
		c.Rules = make(map[string]Override, len(o.Rules))
	}
	for name, of := range o.Rules {
		c.Rules[name] = Override{Enabled: cloned(of.Enabled), Max: cloned(of.Max), Window: cloned(of.Window), Mode: cloned(of.Mode)}
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
		if err := o.Rules[name].own().check(); err != nil {
			return fmt.Errorf("override of rule %.80q: %w", name, err)
		}
	}
	return nil
}

// own returns the override without that of its keys.
func (o Override) own() KeyOverride { return KeyOverride{o.Enabled, o.Max, o.Window, o.Mode} }

// check returns an error if the override fits no rule.
func (o KeyOverride) check() error {
	switch {
	case o.Max != nil && (*o.Max < 0 || *o.Max > MaxCount):
		return fmt.Errorf("max %d is not between 0 and %d", *o.Max, int64(MaxCount))
	case o.Window != nil && (*o.Window < MinWindow || *o.Window > MaxWindow):
		return fmt.Errorf("window %v is not between %v and 366 days", *o.Window, MinWindow)
	case o.Mode != nil && *o.Mode > Soft:
		return fmt.Errorf("unknown mode %d", *o.Mode)
	}
	return nil
}

// An overrideSet is a set of overrides in force. It applies the overrides to each
// rule once, so that a call costs one lookup.
type overrideSet struct {
	Overrides // without their keys
	keys      map[string]*ruleKeys
	rules     ruleTable[effectiveRule]

	replaced chan struct{} // closed when others have come into force
	until    time.Duration // the instant of that
}

func newOverrideSet(o Overrides, keys map[string]*ruleKeys) *overrideSet {
	return &overrideSet{Overrides: o, keys: keys, replaced: make(chan struct{})}
}

// ended returns a channel that is closed when other overrides have come into force. There
// are never any for nil.
func (s *overrideSet) ended() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.replaced
}

// end returns the instant at which other overrides came into force, or now.
func (s *overrideSet) end(now time.Duration) time.Duration {
	select {
	case <-s.ended():
		return s.until
	default:
		return now
	}
}

// An effectiveRule is a rule with its overrides applied.
type effectiveRule struct {
	rule *Rule
	max  int64 // of every call, or ownMax
	off  bool
	keys *effectiveKeys // nil: none has an override
}

// ownMax is the max of calls that keep their own.
const ownMax = -1

func (s *overrideSet) enabled() bool { return s.Enabled == nil || *s.Enabled }

// effective returns a rule with its overrides applied. A rule that the overrides
// do not fit, and that was unknown when they came into force, stays as declared.
func (s *overrideSet) effective(l *Limiter, declared *Rule) *effectiveRule {
	if found := s.rules.of(declared); found != nil {
		return found
	}
	e, err := s.apply(declared)
	if err != nil {
		e = &effectiveRule{rule: declared, max: ownMax}
	}
	if s.rules.keep(declared, e) && err != nil {
		l.overridesFailed(stale.Invalid(private.Errorf("%w; the rule stays as declared", err)))
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
		return &effectiveRule{rule: declared, max: ownMax}, nil
	}
	changed := *declared
	changed.declared, changed.overridden = declared, o.own() != KeyOverride{}
	e := &effectiveRule{rule: &changed, off: o.Enabled != nil && !*o.Enabled, max: ownMax}
	if o.Max != nil {
		changed.Max, e.max = *o.Max, *o.Max
	}
	if o.Window != nil {
		changed.Window = *o.Window
		changed.fitLease()
	}
	if o.Mode != nil {
		changed.Mode = *o.Mode
	}
	if err := changed.check(changed.Max, 1); err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	if k := s.keys[declared.Name]; k != nil {
		var err error
		if e.keys, err = k.apply(e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// next returns the set that follows when o and keys are the overrides. The error
// names a known rule that they do not fit. A rule whose override is unchanged
// keeps its effectiveRule, and with it its remembered denials.
func (s *overrideSet) next(o Overrides, keys map[string]*ruleKeys) (next *overrideSet, err error) {
	next = newOverrideSet(o, keys)
	s.rules.all(func(declared *Rule, e *effectiveRule) bool {
		name := declared.Name
		before, was := s.Rules[name]
		after, is := o.Rules[name]
		if was != is || s.keys[name] != keys[name] || !reflect.DeepEqual(before, after) {
			e, err = next.apply(declared)
		}
		if err == nil {
			next.rules.keep(declared, e)
		}
		return err == nil
	})
	return next, err
}
