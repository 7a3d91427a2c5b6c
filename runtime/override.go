package runtime

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/private"
)

// An Override changes a rule while the program runs. A field that is nil
// leaves the rule as it was declared.
type Override struct {
	// Enabled at false removes the limit: calls go on uncounted by it.
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
// leaves the key as the rule's [Override] says, or else as it is declared.
type KeyOverride struct {
	// Enabled at false removes the limit of these keys; at true they have it
	// though the rule's override removes it.
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
	// Enabled at false removes all limits, as [WithEnabled] does. At true
	// or nil the limiter's own switch decides.
	Enabled *bool
	// Rules are the changed rules by their names. A name that no rule has is
	// no error, since rules become known by [Limiter.Register] or with their first
	// call. The log warns of it after a minute without either.
	Rules map[string]Override
}

// DefaultOverrideInterval is how often an override source is polled by default.
const DefaultOverrideInterval = time.Second

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

// Check returns an error that names the first of the overrides that no rule could
// have, or that one of rules does not allow: what a limiter with those rules would
// reject. It is for tools that write overrides.
func (o Overrides) Check(rules ...*Rule) error {
	numbers, err := o.numbers(new(override.Overrides))
	if err != nil {
		return err
	}
	s := newOverrideSet(numbers, nil)
	for _, r := range rules {
		if err := r.checkPrefix(); err != nil {
			return fmt.Errorf("check overrides: %w", err)
		}
		if _, err := s.Apply(r); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the overrides as the engine knows them. Keys that are as they were are
// those of before. The error names the first override that fits no rule.
func (o Overrides) numbers(before *override.Overrides) (n override.Overrides, err error) {
	n.Off, n.Rules, n.Keys = o.Enabled != nil && !*o.Enabled, make(map[string]override.Change, len(o.Rules)), map[string]*override.Keys{}
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		r := o.Rules[name]
		if n.Rules[name], err = (KeyOverride{r.Enabled, r.Max, r.Window, r.Mode}).change(); err != nil {
			return n, fmt.Errorf("override of rule %.80q: %w", name, err)
		}
		if len(r.Keys) == 0 {
			continue
		}
		keys := before.Keys[name]
		if keys == nil || !keys.Equal(len(r.Keys), changes(r.Keys)) {
			keys, err = override.NewKeys(slices.Sorted(maps.Keys(r.Keys)), func(pattern string) (override.Change, error) { return r.Keys[pattern].change() })
			if err != nil {
				return n, private.Errorf("override of rule %.80q%w", name, err)
			}
		}
		n.Keys[name] = keys
	}
	return n, nil
}

// changes returns patterns of keys and what each changes.
func changes(each map[string]KeyOverride) iter.Seq2[string, override.Change] {
	return func(yield func(string, override.Change) bool) {
		for pattern, o := range each {
			c, err := o.change()
			if err != nil {
				c.Max = math.MinInt64 // which no rule has had before
			}
			if !yield(pattern, c) {
				return
			}
		}
	}
}

// change returns what the override changes, and an error if it fits no rule.
func (o KeyOverride) change() (override.Change, error) {
	c := override.Nothing
	if o.Max != nil {
		if c.Max = *o.Max; c.Max < 0 || c.Max > MaxAmount {
			return c, fmt.Errorf("max %d is not between 0 and %d", c.Max, int64(MaxAmount))
		}
	}
	if o.Window != nil {
		if c.Window = *o.Window; c.Window < MinWindow || c.Window > MaxWindow {
			return c, fmt.Errorf("window %v is not between %v and 366 days", c.Window, MinWindow)
		}
	}
	if o.Mode != nil {
		if c.Mode = int8(*o.Mode); *o.Mode > ModeSoft {
			return c, fmt.Errorf("unknown mode %d", *o.Mode)
		}
	}
	if o.Enabled != nil {
		if c.Enabled = 0; *o.Enabled {
			c.Enabled = 1
		}
	}
	return c, nil
}

// An overrideSet is a set of overrides in force.
type overrideSet = override.Set[Rule]

// newOverrideSet returns a set that tells misfit of overrides that fit no rule of theirs.
func newOverrideSet(o override.Overrides, misfit func(error)) *overrideSet {
	return override.NewSet(o, &override.Functions[Rule]{
		Name:    func(r *Rule) string { return r.Name },
		Changed: (*Rule).changed,
		Check: func(r *Rule, max int64) error {
			if max == override.Unset {
				max = r.Max
			}
			return r.check(max, 1)
		},
		Misfit: misfit,
	})
}

// changed returns a copy of the rule with the change of an override.
func (r *Rule) changed(c override.Change) *Rule {
	changed := *r
	changed.declared, changed.overridden = r.declaration(), true
	if c.Max != override.Unset {
		changed.Max = c.Max
	}
	if c.Mode != override.Unset {
		changed.Mode = Mode(c.Mode)
	}
	if c.Window != 0 {
		changed.Window = c.Window
	}
	if changed.Period == NoPeriod && changed.Window != r.Window && changed.Lease >= changed.Window {
		changed.Lease = 0
	}
	return &changed
}
