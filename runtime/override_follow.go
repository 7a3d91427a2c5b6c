package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/stale"
)

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

// A follower polls an override source for a limiter.
type follower struct {
	poll  override.Follower[Overrides]
	unmet override.Unmet
}

func newFollower(source OverrideSource, interval time.Duration, l *Limiter) *follower {
	f := new(follower)
	f.poll = override.Follower[Overrides]{
		Interval: interval,
		Read:     func(ctx context.Context) (Overrides, error) { return source.Overrides(ctx) },
		Apply: func(o Overrides, again bool) error {
			if err := l.override(o, again); err != nil {
				return stale.Invalid(err)
			}
			if unmet := l.overrides.Load().Unmet(&f.unmet); len(unmet) > 0 {
				l.events.log.Tell(report.Unmet, 0, slog.Int("unmet", len(unmet)), slog.Any("rules", override.First(unmet)))
			}
			return nil
		},
		Failed: l.overridesFailed,
		// Failures of the network are the same whatever ports they name.
		Same:     func(a, b error) bool { return ClassOf(a) == ClassOf(b) && ClassOf(a) != ClassOther },
		Panicked: func(value any) { l.events.panicked("override source", value) },
	}
	return f
}

// start polls the source in a goroutine of its own. It returns after the first
// answer, or a tenth of a second.
func (f *follower) start(l *Limiter) {
	l.overrides.Store(newOverrideSet(override.Overrides{}, func(err error) { l.overridesFailed(stale.Invalid(err)) }))
	if l.cap != nil {
		l.overrides.Load().Of(l.cap.rule)
	}
	f.poll.Start()
}

// close ends the polling. A nil follower polls nothing.
func (f *follower) close() error {
	if f == nil {
		return nil
	}
	return f.poll.Close()
}

// override puts overrides in force if they differ from those that are, are valid,
// and fit every rule that the limiter knows. It reports them if they differ, or if
// it is to report them again.
func (l *Limiter) override(o Overrides, again bool) error {
	current := l.overrides.Load()
	numbers, err := o.numbers(&current.Overrides)
	switch {
	case err != nil:
		return err
	case current.Equal(&numbers):
		if again {
			l.overridesInForce(current)
		}
		return nil
	}
	next, err := current.Next(numbers)
	if err != nil {
		return err
	}
	l.overrides.Store(next)
	current.Replace()
	l.plans.Clear()
	l.overridesInForce(next)
	return nil
}

// overridesInForce reports the overrides in force.
func (l *Limiter) overridesInForce(s *overrideSet) {
	l.events.log.Write(slog.LevelInfo, "overrides of rate limits are in force", 0,
		slog.Bool("enabled", !s.Off), slog.Int("overridden", len(s.Rules)), slog.Any("rules", override.First(s.Names())))
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: !s.Off})
}

// overridesFailed reports why overrides do not come into force: they are rejected, or
// could not be read.
func (l *Limiter) overridesFailed(err error) {
	line := report.Unread
	if errors.Is(err, ErrInvalidOverrides) {
		line = report.Rejected
	}
	l.events.log.Tell(line, 0, slog.Any("error", err))
	s := l.overrides.Load()
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: !s.Off, Err: err})
}
