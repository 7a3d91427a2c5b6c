package runtime

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// unmetAfter is how long a name may be overridden before it is suspect that no
// call has met a rule of that name.
const unmetAfter = time.Minute

// unmet knows since when names are overridden, to warn once of each that no
// call meets: a misspelt one changes nothing, and nobody would know.
type unmet struct {
	since map[string]time.Time // zero: there is no more to say
}

// look warns of names that are overridden for long enough.
func (u *unmet) look(l *Limiter) {
	r := l.overrides.Load()
	if len(r.Rules) == 0 {
		u.since = nil
		return
	}
	maps.DeleteFunc(u.since, func(name string, _ time.Time) bool {
		_, is := r.Rules[name]
		return !is
	})
	if u.since == nil {
		u.since = make(map[string]time.Time)
	}
	now, due := time.Now(), make(map[string]Override)
	for name, of := range r.Rules {
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
	r.rules.all(func(declared *Rule, _ *ruled) bool {
		delete(due, declared.Name)
		return true
	})
	if len(due) > 0 {
		l.events.warn("no call has met rules that are overridden: are their names right?",
			slog.Int("unmet", len(due)), slog.Any("rules", some(due)))
	}
}

// some returns the beginnings of the first few names, for a line in the log.
func some(rules map[string]Override) []string {
	names := slices.Sorted(maps.Keys(rules))
	names = names[:min(len(names), 10)]
	for i, name := range names {
		names[i] = name[:min(len(name), 80)]
	}
	return names
}
