package runtime

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/stale"
)

// An overrideSet is a set of overrides in force. It applies the overrides to each
// rule once, so that a call costs one lookup.
type overrideSet struct {
	Overrides // without their keys
	keys      map[string]*override.Keys
	rules     ruleTable[effectiveRule]

	replaced chan struct{} // closed when others have come into force
	until    time.Duration // the instant of that
}

func newOverrideSet(o Overrides, keys map[string]*override.Keys) *overrideSet {
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

// effectiveKeys are a rule with the overrides of its keys applied.
type effectiveKeys struct {
	patterns *override.Keys
	each     []effectiveRule // for each of their changes
}

// ownMax is the max of calls that keep their own.
const ownMax = override.Unset

func (s *overrideSet) enabled() bool { return s.Enabled == nil || *s.Enabled }

// effective returns a rule with its overrides applied. A rule that the overrides
// do not fit, and that was unknown when they came into force, stays as declared.
func (s *overrideSet) effective(l *Limiter, declared *Rule) *effectiveRule {
	if found := s.rules.find(declared); found != nil {
		return found
	}
	e, err := s.apply(declared)
	if err != nil {
		e = &effectiveRule{rule: declared, max: ownMax}
	}
	if s.rules.keep(declared, e) && err != nil {
		l.overridesFailed(stale.Invalid(private.Errorf("%w; the rule stays as declared", err)))
	}
	if found := s.rules.find(declared); found != nil {
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
		if e.keys, err = applyKeys(k, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// next returns the set that follows when o and keys are the overrides. The error
// names a known rule that they do not fit. A rule whose override is unchanged
// keeps its effectiveRule, and with it its remembered denials.
func (s *overrideSet) next(o Overrides, keys map[string]*override.Keys) (next *overrideSet, err error) {
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

// changeOf returns what a key's override changes.
func changeOf(o KeyOverride) override.Change {
	c := override.Change{Max: ownMax, Mode: override.Unset, Enabled: override.Unset}
	if o.Max != nil {
		c.Max = *o.Max
	}
	if o.Window != nil {
		c.Window = *o.Window
	}
	if o.Mode != nil {
		c.Mode = int8(*o.Mode)
	}
	if o.Enabled != nil {
		c.Enabled = 0
		if *o.Enabled {
			c.Enabled = 1
		}
	}
	return c
}

// keysOf returns the overrides of keys that o has, by rules. Those that are as
// they were are those of s. The error names the first rule and pattern that make
// no sense.
func (s *overrideSet) keysOf(o Overrides) (map[string]*override.Keys, error) {
	var all map[string]*override.Keys
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		each := o.Rules[name].Keys
		if len(each) == 0 {
			continue
		}
		keys := s.keys[name]
		if keys == nil || !keys.Equal(len(each), changes(each)) {
			var err error
			if keys, err = newKeys(each); err != nil {
				return nil, private.Errorf("override of rule %.80q%w", name, err)
			}
		}
		if all == nil {
			all = make(map[string]*override.Keys)
		}
		all[name] = keys
	}
	return all, nil
}

func newKeys(each map[string]KeyOverride) (*override.Keys, error) {
	return override.NewKeys(slices.Sorted(maps.Keys(each)), func(pattern string) (override.Change, error) {
		o := each[pattern]
		return changeOf(o), o.check()
	})
}

// changes returns the patterns of keys and what each changes.
func changes(each map[string]KeyOverride) iter.Seq2[string, override.Change] {
	return func(yield func(string, override.Change) bool) {
		for pattern, o := range each {
			if !yield(pattern, changeOf(o)) {
				return
			}
		}
	}
}

// applyKeys applies the overrides of keys to a rule that has its own applied. The
// error names a key's override that the rule does not allow. Changes with one window and
// mode have one rule.
func applyKeys(k *override.Keys, e *effectiveRule) (*effectiveKeys, error) {
	type terms struct {
		window time.Duration
		mode   Mode
	}
	rules := map[terms]*Rule{}
	keys := &effectiveKeys{patterns: k, each: make([]effectiveRule, len(k.Changes()))}
	for i, c := range k.Changes() {
		changed := effectiveRule{max: e.max, off: e.off}
		is := terms{cmp.Or(c.Window, e.rule.Window), e.rule.Mode}
		if c.Mode != override.Unset {
			is.mode = Mode(c.Mode)
		}
		if changed.rule = rules[is]; changed.rule == nil {
			copied := *e.rule
			copied.Window, copied.Mode, copied.overridden = is.window, is.mode, true
			copied.fitLease()
			changed.rule = &copied
			rules[is] = changed.rule
		}
		if c.Enabled != override.Unset {
			changed.off = c.Enabled == 0
		}
		most := e.rule.Max
		if c.Max != ownMax {
			changed.max, most = c.Max, c.Max
		}
		if err := changed.rule.check(most, 1); err != nil {
			return nil, private.Errorf("override of key %.80q: %w", private.Text(k.Pattern(uint32(i))), err)
		}
		keys.each[i] = changed
	}
	return keys, nil
}

// ruleFor returns the rule for a key, which is e if the key has no override.
func (k *effectiveKeys) ruleFor(e *effectiveRule, key *Key) *effectiveRule {
	if change, found := k.patterns.Find(key.bytes()); found {
		return &k.each[change]
	}
	return e
}
