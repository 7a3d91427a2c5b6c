package override

import (
	"maps"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// A reading is the parsed content of a file or hash.
type reading struct {
	overrides runtime.Overrides // as it is in force
	timed     []timed
	next      time.Time // when what is in force changes; zero: never
	some      bool      // some of it had an end
}

// A timed change has an end that has not come.
type timed struct {
	target Target
	change Change
	all    bool // it is that of all limits: a file may have a rule named *
}

// addExpiry notes that what is said of a target has an end, if it has one after a time.
func (r *reading) addExpiry(t timed, now time.Time) {
	end := t.change.next(now)
	if end.IsZero() {
		return
	}
	r.timed, r.some = append(r.timed, t), true
	if r.next.IsZero() || end.Before(r.next) {
		r.next = end
	}
}

// at returns what is in force at a time, and forgets what has ended by then. What
// it has returned before does not change: a limiter may be reading it.
func (r *reading) at(now time.Time) runtime.Overrides {
	if !expired(r.next, now) {
		return r.overrides
	}
	overrides := r.overrides
	overrides.Rules = maps.Clone(overrides.Rules)
	copied := make(map[Target]bool) // without the pattern: those whose patterns are a copy
	last := r.timed
	r.timed, r.next = nil, time.Time{}
	for _, t := range last {
		target, is := t.target, t.change.At(now)
		more := !t.change.next(now).IsZero()
		r.addExpiry(t, now)
		gone := !more && is == rule.KeyOverride{}
		of, known := overrides.Rules[target.Rule]
		if t.all {
			overrides.Enabled = is.Enabled
			continue
		}
		if !known && gone {
			continue // all that was said of it has ended
		}
		if list := target.list(); list == "" {
			of = overrideOf(is, of)
		} else {
			patterns, all := patternsOf(&of, list), targetIn(target.Rule, list, "")
			if !copied[all] {
				*patterns = maps.Clone(*patterns)
				copied[all] = true
			}
			(*patterns)[target.Pattern] = is
			if gone {
				delete(*patterns, target.Pattern)
			}
		}
		overrides.Rules[target.Rule] = of
		if gone && len(of.Keys)+len(of.Shares) == 0 && ownOf(of) == (rule.KeyOverride{}) {
			delete(overrides.Rules, target.Rule)
		}
	}
	r.overrides = overrides
	return overrides
}

// over returns the rules of which all that is said of the rule, or of some keys, had ended before
// a time.
func (r *reading) over(now time.Time) (rules []string) {
	for _, t := range r.timed {
		if t.change.next(now).IsZero() && t.change.At(now) == (rule.KeyOverride{}) {
			rules = append(rules, t.target.Rule)
		}
	}
	return rules
}

// lastGood returns what is to be in force though the source is of no use now: what
// holds, or else only the error. A limiter keeps that itself, but not the ends.
func (r *reading) lastGood(now time.Time, err error) (runtime.Overrides, error) {
	if !r.some {
		return runtime.Overrides{}, err
	}
	return r.at(now), &private.Stale{Err: err}
}
