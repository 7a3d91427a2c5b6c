package runtime

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/override"
	"github.com/rategen/rategen/runtime/internal/stale"
)

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
			f.warnUnmet(l)
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
	l.overrides.Store(newOverrideSet(Overrides{}, nil))
	if l.cap != nil {
		l.overrides.Load().effective(l, l.cap.rule)
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
	keys, err := current.keysOf(o)
	if err != nil {
		return err
	}
	o = o.clone() // the source may go on to change what it holds
	if reflect.DeepEqual(current.Overrides, o) && maps.Equal(current.keys, keys) {
		if again {
			l.overridesInForce(current)
		}
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	next, err := current.next(o, keys)
	if err != nil {
		return err
	}
	l.overrides.Store(next)
	current.until = instant()
	close(current.replaced)
	l.plans.Clear()
	l.overridesInForce(next)
	return nil
}

// overridesInForce reports the overrides in force.
func (l *Limiter) overridesInForce(s *overrideSet) {
	l.events.log.Write(slog.LevelInfo, "overrides of rate limits are in force", 0,
		slog.Bool("enabled", s.enabled()), slog.Int("overridden", len(s.Rules)), slog.Any("rules", firstNames(slices.Sorted(maps.Keys(s.Rules)))))
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: s.enabled()})
}

// overridesFailed reports why overrides do not come into force: they are rejected, or
// could not be read.
func (l *Limiter) overridesFailed(err error) {
	what := "cannot be read"
	if errors.Is(err, ErrInvalidOverrides) {
		what = "rejected"
	}
	l.events.warn("overrides of rate limits "+what+", the last good ones stay in force", slog.Any("error", err))
	s := l.overrides.Load()
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: s.enabled(), Err: err})
}

// warnUnmet warns of names that are overridden and that no call has used for a while.
func (f *follower) warnUnmet(l *Limiter) {
	s := l.overrides.Load()
	due := f.unmet.Due(slices.Sorted(maps.Keys(s.Rules)))
	if len(due) == 0 {
		return
	}
	used := make(map[string]bool)
	s.rules.all(func(declared *Rule, _ *effectiveRule) bool {
		used[declared.Name] = true
		return true
	})
	if due = slices.DeleteFunc(due, func(name string) bool { return used[name] }); len(due) > 0 {
		l.events.warn("overrides name rules that no call has used: check the names",
			slog.Int("unmet", len(due)), slog.Any("rules", firstNames(due)))
	}
}

// firstNames returns the beginnings of the first few names, for a line in the log.
func firstNames(names []string) []string {
	first := slices.Clone(names[:min(len(names), 10)])
	for i, name := range first {
		first[i] = name[:min(len(name), 80)]
	}
	return first
}

// clone returns a copy without the keys that shares nothing with o.
func (o Overrides) clone() Overrides {
	c := Overrides{Enabled: cloned(o.Enabled)}
	if len(o.Rules) > 0 {
		c.Rules = make(map[string]Override, len(o.Rules))
	}
	for name, rule := range o.Rules {
		c.Rules[name] = Override{Enabled: cloned(rule.Enabled), Max: cloned(rule.Max), Window: cloned(rule.Window), Mode: cloned(rule.Mode)}
	}
	return c
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
