package override

import (
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/stale"
)

// A Target is what an override is for: a rule, keys of a rule, or all limits. It
// is what a field of the hash names.
type Target struct {
	Rule    string // its name, or [All]
	Pattern string // of keys, if Keys
	Keys    bool   // it is for keys of the rule, and not for the rule
}

// All is the Rule of the [Target] that is for all limits. No rule that has this
// name can be overridden in a hash.
const All = "*"

// A Change is what an override changes, and until when.
type Change struct {
	runtime.KeyOverride
	Until time.Time // from then on it has no effect; zero: it has no end
}

func (c Change) empty() bool { return c.KeyOverride == runtime.KeyOverride{} }

func (c Change) ended(now time.Time) bool { return !c.Until.IsZero() && !now.Before(c.Until) }

// A reading is what a file or hash says.
type reading struct {
	says runtime.Overrides
	ends []ending
	some bool // some of it had an end
}

// An ending is when an override ends.
type ending struct {
	until  time.Time
	target Target
	all    bool // it is that of all limits: a file may have a rule named *
}

func (e ending) over(now time.Time) bool { return !now.Before(e.until) }

// lasts notes that what is said of a target has an end, if it has.
func (r *reading) lasts(until time.Time, target Target) {
	if !until.IsZero() {
		r.ends = append(r.ends, ending{until: until, target: target})
		r.some = true
	}
}

// at returns what is in force at a time, and forgets what has ended by then. What
// it has returned before does not change: a limiter may be reading it.
func (r *reading) at(now time.Time) runtime.Overrides {
	if !slices.ContainsFunc(r.ends, func(e ending) bool { return e.over(now) }) {
		return r.says
	}
	says := r.says
	says.Rules = maps.Clone(says.Rules)
	copied := make(map[string]bool) // rules whose keys are a copy
	for _, end := range r.ends {
		target := end.target
		of, is := says.Rules[target.Rule]
		switch {
		case !end.over(now):
			continue
		case end.all:
			says.Enabled = nil
			continue
		case !is:
			continue // all that was said of it has ended
		case !target.Keys:
			of = runtime.Override{Keys: of.Keys}
		default:
			if !copied[target.Rule] {
				of.Keys = maps.Clone(of.Keys)
				copied[target.Rule] = true
			}
			delete(of.Keys, target.Pattern)
		}
		if says.Rules[target.Rule] = of; len(of.Keys) == 0 && ownOf(of) == (runtime.KeyOverride{}) {
			delete(says.Rules, target.Rule)
		}
	}
	r.says, r.ends = says, slices.DeleteFunc(slices.Clone(r.ends), func(e ending) bool { return e.over(now) })
	return says
}

// despite returns what is to be in force though the source cannot be read: what
// holds, or else only the error. A limiter keeps that itself, but not the ends.
func (r *reading) despite(err error) (runtime.Overrides, error) {
	if !r.some {
		return runtime.Overrides{}, err
	}
	return r.at(time.Now()), &stale.Error{Err: err}
}

// ownOf returns what an override says of the rule, and not of its keys.
func ownOf(o runtime.Override) runtime.KeyOverride {
	return runtime.KeyOverride{Enabled: o.Enabled, Max: o.Max, Window: o.Window, Mode: o.Mode}
}
