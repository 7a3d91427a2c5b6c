package runtime

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// unmetAfter is how long a name may be overridden without a call before the log
// warns of it.
const unmetAfter = time.Minute

// unmet knows since when names are overridden, to warn once of each that no call
// has used. A misspelt name changes nothing, and the log alone shows it.
type unmet struct {
	since map[string]time.Time // zero: warned of
}

// check warns of names that are overridden for long enough.
func (u *unmet) check(l *Limiter) {
	s := l.overrides.Load()
	if len(s.Rules) == 0 {
		u.since = nil
		return
	}
	maps.DeleteFunc(u.since, func(name string, _ time.Time) bool {
		_, is := s.Rules[name]
		return !is
	})
	if u.since == nil {
		u.since = make(map[string]time.Time)
	}
	now, due := time.Now(), make(map[string]Override)
	for name, of := range s.Rules {
		if since, is := u.since[name]; !is {
			u.since[name] = now
		} else if !since.IsZero() && now.Sub(since) >= unmetAfter {
			due[name] = of
			u.since[name] = time.Time{}
		}
	}
	if len(due) == 0 {
		return
	}
	s.rules.all(func(declared *Rule, _ *effectiveRule) bool {
		delete(due, declared.Name)
		return true
	})
	if len(due) > 0 {
		l.events.warn("overrides name rules that no call has used: check the names",
			slog.Int("unmet", len(due)), slog.Any("rules", firstNames(due)))
	}
}

// firstNames returns the beginnings of the first few names, for a line in the log.
func firstNames(rules map[string]Override) []string {
	names := slices.Sorted(maps.Keys(rules))
	names = names[:min(len(names), 10)]
	for i, name := range names {
		names[i] = name[:min(len(name), 80)]
	}
	return names
}
