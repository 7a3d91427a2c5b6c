package override

import (
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// A reading is the parsed content of a file or hash.
type reading struct {
	said      []statement       // nil: nothing has an end that is to come
	overrides runtime.Overrides // as it is in force
	next      time.Time         // when what is in force changes; zero: never
	some      bool              // some of it had an end
}

// A statement is what is said of a target.
type statement struct {
	target Target
	change Change
	all    bool // it is that of all limits: a file may have a rule named *
}

// put makes the overrides of what is said, as they are in force at a time; zero: before any end. Those that it has made
// before do not change: a limiter may be reading them.
func (r *reading) put(now time.Time) {
	r.overrides.Rules, r.next = make(map[string]rule.Override), time.Time{}
	for _, s := range r.said {
		end, is := s.change.next(now), s.change.At(now)
		if !end.IsZero() && (r.next.IsZero() || end.Before(r.next)) {
			r.next = end
		}
		if s.all {
			r.overrides.Enabled = is.Enabled
			continue
		}
		if s.over(now) {
			continue
		}
		of := r.overrides.Rules[s.target.Rule]
		if list := s.target.list(); list == "" {
			of = overrideOf(is, of)
		} else {
			patterns := patternsOf(&of, list)
			if *patterns == nil {
				*patterns = make(map[string]rule.KeyOverride)
			}
			(*patterns)[s.target.Pattern] = is
		}
		r.overrides.Rules[s.target.Rule] = of
	}
	r.some = r.some || !r.next.IsZero()
	if r.next.IsZero() {
		r.said = nil
	}
}

// at returns what is in force at a time.
func (r *reading) at(now time.Time) runtime.Overrides {
	if expired(r.next, now) {
		r.put(now)
	}
	return r.overrides
}

// over reports whether all that is said had an end, which was before a time.
func (s *statement) over(now time.Time) bool {
	never := s.change.Until.IsZero() && len(s.change.Ends) == 0
	return !never && s.change.next(now).IsZero() && s.change.At(now) == rule.KeyOverride{}
}

// over returns the rules of which all that is said of the rule, or of some keys, had ended before
// a time.
func (r *reading) over(now time.Time) (rules []string) {
	for _, s := range r.said {
		if s.over(now) {
			rules = append(rules, s.target.Rule)
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
