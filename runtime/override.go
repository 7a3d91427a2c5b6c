package runtime

import (
	"context"
	"fmt"
	"maps"
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

// WithOverrides changes rules while the program runs: source is polled at once
// and then at every interval, 0 standing for [DefaultOverrideInterval]. Its
// overrides are in force for all later calls. If any of them is invalid, or does
// not fit a rule that the limiter knows, all are rejected and the last good ones
// stay. A rule becomes known with its first call; if its override does not fit
// then, the rule stays as declared. The last good ones stay as well while the source
// cannot be read. Either is reported once, and again every minute while the error stays
// the same.
//
// [New] waits for the first answer for at most 100 ms. Until there is one, rules
// are as declared. [Limiter.Close] ends the polling.
func WithOverrides(source OverrideSource, interval time.Duration) Option {
	return func(l *Limiter) {
		if interval <= 0 {
			interval = DefaultOverrideInterval
		}
		l.follow = newFollower(source, interval, l)
	}
}

// Check returns an error that names the first of the overrides that no rule could
// have, or that one of rules does not allow: what a limiter with those rules would
// reject. It is for tools that write overrides.
func (o Overrides) Check(rules ...*Rule) error {
	keys, err := new(overrideSet).keysOf(o)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return err
	}
	s := &overrideSet{Overrides: o, keys: keys}
	for _, r := range rules {
		if err := r.checkPrefix(); err != nil {
			return fmt.Errorf("check overrides: %w", err)
		}
		if _, err := s.apply(r); err != nil {
			return err
		}
	}
	return nil
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
	case o.Mode != nil && *o.Mode > ModeSoft:
		return fmt.Errorf("unknown mode %d", *o.Mode)
	}
	return nil
}
