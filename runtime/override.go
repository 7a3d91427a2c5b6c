package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Overrides are all changes to the declared rules.
type Overrides struct {
	// Enabled at false removes all limits, as [WithEnabled] does. At true or nil the limiter's
	// own switch decides.
	Enabled *bool
	// Rules are the changed rules by their names. A name that no rule has is no error, since
	// rules become known by [Limiter.Register] or with their first call. The log warns of it
	// after a minute without either.
	Rules map[string]rule.Override
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
	numbers, err := o.numbers(new(plan.Overrides))
	if err != nil {
		return ""
	}
	return numbers.Version()
}

// Check returns an error that names the first of the overrides that a limiter with some rules
// would reject. It is for tools that write overrides.
func (o Overrides) Check(rules ...*Rule) error {
	numbers, err := o.numbers(new(plan.Overrides))
	if err != nil {
		return err
	}
	s := plan.NewOverrideSet(numbers, nil)
	for _, r := range rules {
		if err := rule.Engine.CheckPrefix(r); err != nil {
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
func (o Overrides) numbers(before *plan.Overrides) (plan.Overrides, error) {
	return plan.NewOverrides(o.Enabled, o.Rules, before)
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
		var unmet plan.Unmet
		fits := map[*Rule]*plan.KeyOverrides{}
		checkOnce("WithOverrides", l.poller != nil)
		l.reporter.Source = sourceName(source)
		l.poller = &plan.Poller[Overrides]{
			Interval: interval,
			Read:     func(ctx context.Context) (Overrides, error) { return source.Overrides(ctx) },
			Apply: func(o Overrides, fresh, again bool) error {
				if err := l.override(o, fresh, again); err != nil {
					return private.InvalidOverrides(err)
				}
				l.events.Log.OverridesUnmet(l.plans.Overrides().Unmet(&unmet))
				l.checkKeys(fits)
				return nil
			},
			Failed: l.reportOverridesError,
			// Failures of the network are the same whatever ports they name.
			Same:     func(a, b error) bool { return ClassOf(a) == ClassOf(b) && ClassOf(a) != observe.ClassOther },
			Panicked: func(value any) { l.events.Log.Panic("override source", value) },
		}
	}
}

// pollOverrides polls the source of overrides, if there is one, in a goroutine of its own. It
// returns after the first answer, or a tenth of a second.
func (l *Limiter) pollOverrides() {
	if l.poller == nil {
		return
	}
	l.plans.Override(plan.NewOverrideSet(plan.Overrides{},
		func(err error) { l.reportOverridesError(private.InvalidOverrides(err)) }))
	if l.processCap != nil {
		l.plans.Overrides().Effective(l.processCap.limit.Rule)
	}
	if !l.poller.Start() {
		l.events.Log.Find(report.Unread, "", "",
			slog.String("error", "the source has not answered yet: rules are as declared until it does"))
	}
}

// override puts overrides in force if they differ from those that are, are valid, and fit every
// rule that the limiter knows. It reports them if they differ, or if fresh ones are to be reported
// again.
func (l *Limiter) override(o Overrides, fresh, again bool) error {
	current := l.plans.Overrides()
	numbers, err := o.numbers(&current.Overrides)
	if err != nil {
		return err
	}
	next, err := current.Next(numbers)
	if err != nil {
		return err
	}
	if next != current {
		l.plans.Override(next)
		l.reporter.Changed()
	}
	if fresh {
		l.events.Log.Remove(report.Rejected)
		l.events.Log.Remove(report.Unread)
	}
	if next != current || fresh && again {
		l.events.Log.OverridesInForce(!next.Off, next.Names())
		l.observeOverrides(nil)
	}
	return nil
}

// checkKeys says which rules have overrides for keys that no call of theirs can have. Checked has
// the keys of each rule that were looked at before.
func (l *Limiter) checkKeys(checked map[*Rule]*plan.KeyOverrides) {
	keys := l.plans.Overrides().Keys
	l.events.Log.RemoveRules(report.UnfitKeys, func(rule string) bool { return keys[rule] == nil })
	for r, s := range l.plans.Samples.All() {
		k := keys[r.Name]
		if checked[r] == k || s.Key() == nil {
			continue
		}
		checked[r] = k
		if k == nil {
			continue
		}
		l.events.Log.RemoveRules(report.UnfitKeys, func(rule string) bool { return rule == r.Name })
		if n := k.Unfit(s.Key()); n > 0 {
			which := strconv.Itoa(n) + " of " + strconv.Itoa(k.Len())
			l.events.Log.Find(report.UnfitKeys, r.Name, which, slog.String("keys", which))
		}
	}
}

// reportOverridesError reports why overrides do not come into force: they are rejected, or could not
// be read.
func (l *Limiter) reportOverridesError(err error) {
	l.events.Log.OverridesFailed(errors.Is(err, ErrInvalidOverrides), err)
	l.observeOverrides(err)
}

// observeOverrides tells the observers of the overrides in force, and why others are not.
func (l *Limiter) observeOverrides(err error) {
	s := l.plans.Overrides()
	for _, o := range l.events.Observers {
		report.Notify(l.events, "observer", o.Override, observe.OverrideEvent{Rules: len(s.Rules), Enabled: !s.Off, Err: err})
	}
}
