package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// examineProcesses looks for what does not hold in the processes that report to Redis.
func (o *operator) examineProcesses(ctx context.Context) (found []finding) {
	processes, err := o.processes(ctx)
	say := func(state, remedy, format string, args ...any) {
		found = append(found, finding{"processes", state, "", fmt.Sprintf(format, args...), remedy})
	}
	switch {
	case err != nil:
		say("unknown", "give the user the right +hvals", "%v", err)
		return found
	case len(processes) == 0:
		say("unknown", "see whether one runs, in this namespace: each reports ten seconds after its start, unless it has WithoutReports", "none reports to this Redis")
		return found
	}
	if o.overrides != "" {
		if f := o.followed(processes); f.Follow == 0 {
			say("bad", "name their hash by -overrides, or have them follow this one: runtime.WithOverrides(override.Redis(...))", "%v", f)
		} else if n := o.current(ctx, f); n < f.Follow {
			say("warn", "ask again in a minute; then see what those have found", "the overrides are in force in %d of %d that follow the hash", n, f.Follow)
		}
	}
	r := readReports(processes)
	if missing := r.missing(o.known); len(missing) > 0 {
		say("warn", "construct the generated wrapper, or name the listing of this program", "none has constructed what limits %s", strings.Join(missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(r.terms)) {
		if terms := r.terms[name]; len(terms) > 1 {
			say("warn", "deploy one version everywhere", "rule %s differs: %s", name, inHowMany(terms))
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(r.findings), func(a, b runtime.Finding) int { return cmp.Compare(a.String(), b.String()) }) {
		says := strings.Join(strings.Fields(f.Code+" "+f.Rule+" "+f.Detail), " ")
		say("warn", f.Help, "%s: %s (in %d of %d)", says, f.Text, r.findings[f], len(processes))
	}
	if len(found) == 0 {
		say("ok", "", "%d report, and all that they declare is in force, as far as they know", len(processes))
	}
	return found
}

// Reports are what some processes say, together.
type reports struct {
	terms    map[string]map[string]int // of rules, by name: in how many they are what
	cut      bool                      // a process has more rules
	findings map[runtime.Finding]int   // in how many
}

func readReports(processes []runtime.Process) reports {
	r := reports{terms: map[string]map[string]int{}, findings: map[runtime.Finding]int{}}
	for _, p := range processes {
		r.cut = r.cut || len(p.Rules) == runtime.MaxReported
		for _, rule := range p.Rules {
			if r.terms[rule.Name] == nil {
				r.terms[rule.Name] = map[string]int{}
			}
			r.terms[rule.Name][rule.Terms]++
		}
		for _, f := range p.Findings {
			f.Since = time.Time{} // which differs
			r.findings[f]++
		}
	}
	return r
}

// missing returns the names of known rules that no process has.
func (r *reports) missing(known []declared) (names []string) {
	for _, d := range known {
		if r.terms[d.Name] == nil && !r.cut && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// inHowMany says how many processes have which terms.
func inHowMany(terms map[string]int) string {
	var each []string
	for _, text := range slices.Sorted(maps.Keys(terms)) {
		each = append(each, fmt.Sprintf("%s in %d", text, terms[text]))
	}
	return strings.Join(each, "; ")
}
