package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
)

// A Difference is a rule that processes have in several forms.
type Difference struct {
	Rule  string
	Terms []Terms // those of most processes first
}

// Terms are how a rule is declared in some processes.
type Terms struct {
	Terms     string
	Processes []string // host and build of each
}

// Compare learns which rules processes have in several forms, for states and rules to say so. Without the right
// to read reports, none is known. What else keeps that from being known it warns of: what holds now is known without.
func (c *Core) Compare(ctx context.Context) {
	processes, err := c.Processes(ctx)
	if err != nil && ctx.Err() == nil && !Replied(err, "NOPERM") {
		c.warnf("whether processes have rules in several forms is not known: %v", c.explained(err))
	}
	c.CompareIn(processes)
}

// CompareIn is Compare for what processes report.
func (c *Core) CompareIn(processes []bridge.Process) {
	c.differs = make(map[string]Difference)
	for _, d := range SurveyOf(processes, nil).Differ {
		c.differs[d.Rule] = d
	}
}

// Differing returns the forms that processes have a rule in, if there are several.
func (c *Core) Differing(name string) (Difference, bool) {
	d, is := c.differs[name]
	return d, is
}

// Limits says the terms, as in "15 or 30 in 10s". It is empty if there are none.
func (d Difference) Limits() string {
	each := make([]string, len(d.Terms))
	for i, t := range d.Terms {
		each[i], _, _ = strings.Cut(t.Terms, ", ")
		if i > 0 { // the window of several stands behind the last
			_, window, _ := strings.Cut(each[i], " in ")
			each[i-1] = strings.TrimSuffix(each[i-1], " in "+window)
		}
	}
	return strings.Join(slices.Compact(each), " or ")
}

func (d Difference) String() string {
	each := make([]string, len(d.Terms))
	for i, t := range d.Terms {
		names := slices.Compact(slices.Sorted(slices.Values(t.Processes)))
		more := ""
		if len(names) > 3 {
			more = fmt.Sprintf(" and %d more", len(names)-3)
		}
		each[i] = fmt.Sprintf("%s in %d (%s%s)", t.Terms, len(t.Processes), strings.Join(names[:min(len(names), 3)], ", "), more)
	}
	return strings.Join(each, "; ")
}

// A Survey is what processes have in force.
type Survey struct {
	Processes []bridge.Process
	Differ    []Difference
	Missing   []string         // rules that no process has constructed
	Findings  []Finding        // the worst first, and what is over last
	Apart     []bridge.Process // whose clocks are far from that of Redis
}

// A Finding is what processes have found of one code.
type Finding struct {
	bridge.FindingGroup
	Processes int // in how many
	calls     float64
}

// clocksApart is how far clocks may be apart.
const clocksApart = 2 * time.Second

// Apart reports whether a clock that is behind that of Redis, or ahead, is far from it.
func Apart(behind time.Duration) bool { return behind.Abs() > clocksApart }

// ClockText says how far a clock is behind that of Redis, or ahead.
func ClockText(behind time.Duration) string {
	return behind.Abs().Round(time.Second).String() + map[bool]string{true: " behind", false: " ahead"}[behind > 0]
}

// SurveyOf compares what processes report, of which silent ones are left out. If one has more rules than
// it reports, it is not known which of those with some names are missing.
func SurveyOf(processes []bridge.Process, names []string) (s Survey) {
	type of struct {
		code string
		over bool
	}
	terms, cut, groups, all := map[string]map[string][]string{}, false, map[of]*Finding{}, 0.0
	for _, p := range processes {
		if p.Silent {
			continue
		}
		s.Processes = append(s.Processes, p)
		if Apart(p.Behind) {
			s.Apart = append(s.Apart, p)
		}
		cut = cut || len(p.Rules) == bridge.MaxReported
		for _, r := range p.Rules {
			if terms[r.Name] == nil {
				terms[r.Name] = map[string][]string{}
			}
			terms[r.Name][r.Terms] = append(terms[r.Name][r.Terms], strings.TrimSpace(cmp.Or(p.Host, p.Name)+" "+p.Build))
		}
		calls := 0.0 // a second
		for _, n := range p.Calls.Decided {
			calls += float64(n) / max(p.Calls.Seconds, 1)
		}
		all += calls
		for _, g := range p.Findings {
			is := of{g.Code, !g.Until.IsZero()}
			f := groups[is]
			if f == nil {
				f = &Finding{FindingGroup: g}
				f.Times = 0
				groups[is] = f
			}
			f.Processes++
			f.calls += g.Share * calls
			f.Count, f.Times = max(f.Count, g.Count), f.Times+g.Times
			if g.Since.Before(f.Since) {
				f.Since = g.Since
			}
			if g.Until.After(f.Until) {
				f.Until = g.Until
			}
		}
	}
	for _, name := range names {
		if terms[name] == nil && !cut && len(s.Processes) > 0 && !slices.Contains(s.Missing, name) {
			s.Missing = append(s.Missing, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		if len(terms[name]) < 2 {
			continue
		}
		d := Difference{Rule: name}
		for _, text := range slices.Sorted(maps.Keys(terms[name])) {
			d.Terms = append(d.Terms, Terms{text, terms[name][text]})
		}
		slices.SortStableFunc(d.Terms, func(a, b Terms) int { return cmp.Compare(len(b.Processes), len(a.Processes)) })
		s.Differ = append(s.Differ, d)
	}
	for _, f := range groups {
		if all > 0 {
			f.Share = f.calls / all
		}
		s.Findings = append(s.Findings, *f)
	}
	slices.SortFunc(s.Findings, func(a, b Finding) int {
		return cmp.Or(bridge.WorstFirst(a.FindingGroup, b.FindingGroup), cmp.Compare(b.Processes, a.Processes), cmp.Compare(a.Code, b.Code))
	})
	return s
}

// State says how bad the finding is, as a [Check] does. What is over is ok.
func (f Finding) State() string {
	if !f.Until.IsZero() {
		return "ok"
	}
	if f.Severe {
		return "bad"
	}
	return "warn"
}

// About says what the finding is about, and in how many processes.
func (f Finding) About(processes int) string {
	return fmt.Sprintf("%s (in %d of %d)", FindingText(f.FindingGroup), f.Processes, processes)
}

// FindingText says a group of findings in one line: its code, the first three, the share of calls that they
// touch, and from when to when.
func FindingText(g bridge.FindingGroup) string {
	text := g.Code
	first := strings.Join(g.First[:min(len(g.First), 3)], ", ")
	if g.Count > 1 {
		text += fmt.Sprintf(" %d times (%s)", g.Count, strings.TrimSuffix(first+", …", ", "))
	} else if first != "" {
		text += " " + first
	}
	text += ": " + g.Text
	if g.Share > 0 {
		text += fmt.Sprintf(", of rules with %.0f%% of all calls", max(1, 100*g.Share))
	}
	text += since(g.Since)
	if !g.Until.IsZero() {
		text += " until " + g.Until.UTC().Format(time.RFC3339)
	}
	return text
}
