package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/stale"
)

// An Override changes a rule while the program runs. A field that is nil leaves the rule as it
// was declared.
type Override struct {
	// Enabled at false removes the limit: calls go on uncounted by it.
	Enabled *bool
	// Max is how much is admitted in a window, also where a call brings a max of its own. At 0
	// nobody is admitted. A burst that the rule declares stays.
	Max *int64
	// Window is the time that the max refers to. Events that were counted in a shorter window
	// before are forgotten when that window is over.
	Window *time.Duration
	// Mode is whether the limit denies calls.
	Mode *Mode
	// Keys are changes for single keys, by patterns. A pattern is a key as [Key.String] returns
	// it, or the beginning of keys and a *, as in premium-*. If a key matches several patterns,
	// the key itself is in force, or else the longest pattern. A * that ends a key is written
	// %2A; a * elsewhere in a pattern and an escape that no key has are errors. A key that is
	// too long for Redis may be written as it stands there, %sha256- and its hash. A rule may
	// have a million patterns, of up to 1,024 bytes.
	Keys map[string]KeyOverride
}

// A KeyOverride changes a rule for the keys of a pattern, each of which has a limit of its own.
// Its fields are as in [Override]. One that is nil leaves the keys as that says, or else as
// they are declared: Enabled at true gives them the limit that it removes.
type KeyOverride struct {
	Enabled *bool
	Max     *int64
	Window  *time.Duration
	Mode    *Mode
}

// Overrides are all changes to the declared rules.
type Overrides struct {
	// Enabled at false removes all limits, as [WithEnabled] does. At true or nil the limiter's
	// own switch decides.
	Enabled *bool
	// Rules are the changed rules by their names. A name that no rule has is no error, since
	// rules become known by [Limiter.Register] or with their first call. The log warns of it
	// after a minute without either.
	Rules map[string]Override
}

// An OverrideSource returns the overrides that are to be in force. Package runtime/override has
// two sources: a file, and a hash in Redis.
type OverrideSource interface {
	// Overrides returns all overrides as they are now, and gives up when ctx ends. It is called
	// by one goroutine at a time, and its result is copied before the next call. An error
	// leaves the last good ones in force. One that is [ErrInvalidOverrides] says that they were
	// read, and that somebody has to correct them; any other that they could not be read.
	Overrides(ctx context.Context) (Overrides, error)
}

// An OverrideFunc is a function as an [OverrideSource].
type OverrideFunc func(ctx context.Context) (Overrides, error)

// Overrides calls f.
func (f OverrideFunc) Overrides(ctx context.Context) (Overrides, error) { return f(ctx) }

// sourceName says in a report where overrides come from.
func sourceName(source OverrideSource) string {
	if s, ok := source.(fmt.Stringer); ok {
		return fmt.Sprintf("%.200s", s)
	}
	return "function"
}

// Version returns a short text that is the same for overrides that change the same, whatever
// their order is. It is empty if a limiter would reject them whatever its rules are.
func (o Overrides) Version() string {
	numbers, err := o.numbers(new(override.Overrides))
	if err != nil {
		return ""
	}
	return numbers.Version()
}

// Check returns an error that names the first of the overrides that a limiter with some rules
// would reject. It is for tools that write overrides.
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

// numbers returns the overrides as the engine knows them. Keys that are as they were are those
// of before. The error names the first override that fits no rule.
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
		if n.Keys[name], err = override.NewKeys(before.Keys[name], r.Keys, KeyOverride.change); err != nil {
			return n, private.Errorf("override of rule %.80q%w", name, err)
		}
	}
	return n, nil
}

// change returns what the override changes, and an error if it fits no rule.
func (o KeyOverride) change() (override.Change, error) {
	return override.NewChange(o.Enabled, o.Max, o.Window, (*uint8)(o.Mode), uint8(ModeSoft))
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

// WithOverrides changes rules while the program runs: source is polled at once and then at
// every interval, 0 standing for a second. Its overrides are in force for all later calls. If
// any of them is invalid, or does not fit a rule that the limiter knows, all are rejected. A
// rule becomes known with its first call; if its override does not fit then, the rule stays as
// declared. While overrides are rejected, or the source cannot be read, the last good ones stay.
// Either is reported once, and again every minute while the error stays the same.
//
// [New] waits for the first answer for at most 100 ms. Until there is one, rules are as
// declared. [Limiter.Close] ends the polling. New panics if there are two sources.
func WithOverrides(source OverrideSource, interval time.Duration) Option {
	if interval <= 0 {
		interval = time.Second
	}
	return func(l *Limiter) {
		var unmet override.Unmet
		fits := map[*Rule]*override.Keys{}
		once("WithOverrides", l.follow != nil)
		l.reports.source = sourceName(source)
		l.follow = &override.Follower[Overrides]{
			Interval: interval,
			Read:     func(ctx context.Context) (Overrides, error) { return source.Overrides(ctx) },
			Apply: func(o Overrides, again bool) error {
				if err := l.override(o, again); err != nil {
					return stale.Invalid(err)
				}
				l.events.log.OverridesUnmet(l.overrides.Load().Unmet(&unmet))
				l.checkKeys(fits)
				return nil
			},
			Failed: l.overridesFailed,
			// Failures of the network are the same whatever ports they name.
			Same:     func(a, b error) bool { return ClassOf(a) == ClassOf(b) && ClassOf(a) != ClassOther },
			Panicked: func(value any) { l.events.log.Panic("override source", value) },
		}
	}
}

// followOverrides polls the source of overrides, if there is one, in a goroutine of its own. It
// returns after the first answer, or a tenth of a second.
func (l *Limiter) followOverrides() {
	if l.follow == nil {
		return
	}
	l.overrides.Store(newOverrideSet(override.Overrides{}, func(err error) { l.overridesFailed(stale.Invalid(err)) }))
	if l.cap != nil {
		l.overrides.Load().Effective(l.cap.limit.rule)
	}
	if !l.follow.Start() {
		l.events.log.Find(report.Unread, "", "", slog.String("error", "the source has not answered yet: rules are as declared until it does"))
	}
}

// override puts overrides in force if they differ from those that are, are valid, and fit every
// rule that the limiter knows. It reports them if they differ, or if it is to report them
// again.
func (l *Limiter) override(o Overrides, again bool) error {
	current := l.overrides.Load()
	numbers, err := o.numbers(&current.Overrides)
	if err != nil {
		return err
	}
	next, err := current.Next(numbers)
	if err != nil {
		return err
	}
	if next != current {
		l.overrides.Store(next)
		current.Replace()
		l.plans.Clear()
		l.reports.in(reportSoon)
	}
	l.events.log.Over(report.Rejected)
	l.events.log.Over(report.Unread)
	if next != current || again {
		l.events.log.OverridesInForce(!next.Off, next.Names())
		l.observeOverrides(nil)
	}
	return nil
}

// checkKeys says which rules have overrides for keys that no call of theirs can have. Checked has
// the keys of each rule that were looked at before.
func (l *Limiter) checkKeys(checked map[*Rule]*override.Keys) {
	keys := l.overrides.Load().Keys
	l.events.log.OverFor(report.UnfitKeys, func(rule string) bool { return keys[rule] == nil })
	for r, s := range l.samples.All() {
		k := keys[r.Name]
		if checked[r] == k || s.Key() == nil {
			continue
		}
		if checked[r] = k; k == nil {
			continue
		}
		l.events.log.OverFor(report.UnfitKeys, func(rule string) bool { return rule == r.Name })
		if n := k.Unfit(s.Key()); n > 0 {
			which := strconv.Itoa(n) + " of " + strconv.Itoa(k.Len())
			l.events.log.Find(report.UnfitKeys, r.Name, which, slog.String("keys", which))
		}
	}
}

// overridesFailed reports why overrides do not come into force: they are rejected, or could not
// be read.
func (l *Limiter) overridesFailed(err error) {
	l.events.log.OverridesFailed(errors.Is(err, ErrInvalidOverrides), err)
	l.observeOverrides(err)
}

// observeOverrides tells the observers of the overrides in force, and why others are not.
func (l *Limiter) observeOverrides(err error) {
	s := l.overrides.Load()
	for _, o := range l.events.observers {
		notify(l.events, "observer", o.Override, OverrideEvent{Rules: len(s.Rules), Enabled: !s.Off, Err: err})
	}
}
