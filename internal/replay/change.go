package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Listed is a rule as changed source declares it.
type Listed struct {
	*runtime.Rule
	ByCall bool // each call brings its max
}

// A Plan is what is to be in force in place of the rules of records: what source declares, then overrides,
// then what Sets says.
type Plan struct {
	Listing   map[string]Listed // by name; nil: the source is as it was
	Overrides runtime.Overrides
	Sets      map[string][]func(*runtime.Rule) // by name
	Max       map[string]bool                  // those of which Sets change the max

	met, gone map[string]bool
	patterns  bool
	made      map[*runtime.Rule]*runtime.Rule
	own       map[*runtime.Rule]bool // what makes the max is the change
}

// NewPlan returns a plan that changes nothing yet.
func NewPlan() *Plan {
	return &Plan{Sets: map[string][]func(*runtime.Rule){}, Max: map[string]bool{}, met: map[string]bool{}, gone: map[string]bool{},
		made: map[*runtime.Rule]*runtime.Rule{}, own: map[*runtime.Rule]bool{}}
}

// CountBy makes a rule count in another way, and drops what that has no use for.
func CountBy(r *runtime.Rule, a runtime.Algorithm) {
	r.Algorithm = a
	row := algorithm.RowOf(a)
	if !row.Takes("storage") {
		r.Storage, r.Resolution = 0, 0
	}
	if !row.Takes("buckets") {
		r.Buckets = rule.Buckets{}
	}
	if !row.Takes("burst") {
		r.Burst, r.Headroom = 0, 0
	}
}

// Change returns what becomes of a rule of a record.
func (p *Plan) Change(s record.RuleState, max int64) (*runtime.Rule, int64, bool) {
	name := s.Declared.Name
	p.met[name] = true
	o, overridden := p.Overrides.Rules[name]
	p.patterns = p.patterns || len(o.Keys) > 0
	if on := p.Overrides.Enabled; on != nil && !*on || o.Enabled != nil && !*o.Enabled {
		return nil, 0, false
	}
	d, listed := p.Listing[name]
	if p.Listing != nil && !listed {
		p.gone[name] = true
		return nil, 0, false
	}
	if !listed && !overridden && p.Sets[name] == nil {
		return s.Rule, max, true
	}
	r := p.made[s.Rule]
	if r == nil {
		made := *s.Rule
		r = &made
		own := p.Max[name]
		if listed {
			own = declare(r, s, d) && !d.ByCall || own
		}
		for _, set := range p.Sets[name] {
			set(r)
		}
		if o.Max != nil {
			r.Max, own = *o.Max, true
		}
		if o.Window != nil {
			r.Window = *o.Window
		}
		rule.Engine.FitHeadroom(r)
		if o.Mode != nil {
			r.Mode = *o.Mode
		}
		p.made[s.Rule], p.own[r] = r, own
	}
	if p.own[r] {
		max = r.Max
	}
	return r, max, true
}

// declare has a rule be as its source says now, but for what an override had changed. It reports
// whether that is the max, too, and is another than before.
func declare(r *runtime.Rule, s record.RuleState, d Listed) (max bool) {
	now := *d.Rule
	now.Prefix = s.Rule.Prefix // its keys are those of the record
	if was := s.Declared; was != s.Rule {
		if was.Window != s.Rule.Window {
			now.Window = s.Rule.Window
		}
		if was.Mode != s.Rule.Mode {
			now.Mode = s.Rule.Mode
		}
		if was.Max != s.Rule.Max {
			now.Max = s.Rule.Max
		}
	}
	if d.ByCall {
		now.Max = s.Rule.Max
	}
	*r = now
	return now.Max != s.Rule.Max
}

// Tell adds to a result what became of the changes.
func (p *Plan) Tell(r *Result) {
	say := func(format string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			r.Notes = append(r.Notes, fmt.Sprintf(format, strings.Join(slices.Compact(names), ", ")))
		}
	}
	var unmet []string
	for _, name := range slices.Concat(slices.Collect(maps.Keys(p.Listing)), slices.Collect(maps.Keys(p.Overrides.Rules))) {
		if !p.met[name] {
			unmet = append(unmet, name)
		}
	}
	say("Rules that are not declared any more refuse nobody: %s.", slices.Collect(maps.Keys(p.gone)))
	say("The records have no call of these rules, so nothing is known of them: %s.", unmet)
	if p.Listing != nil {
		r.Notes = append(r.Notes, "A key, a cost or a condition that has changed in the source is replayed as it was.")
	}
	if p.patterns {
		r.Notes = append(r.Notes, "Overrides of single keys are left out: a record names no caller.")
	}
}
