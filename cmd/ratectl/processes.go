package main

import (
	"encoding/json"

	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/override"
)

type processLine struct {
	Name      string                `json:"name"`
	Host      string                `json:"host"`
	Build     string                `json:"build"`
	Alive     time.Time             `json:"alive"` // its last sign of life, by the clock of Redis
	Silent    bool                  `json:"silent"`
	BehindMS  int64                 `json:"behind_ms"` // its clock, of that of Redis
	Overrides string                `json:"overrides"`
	Version   string                `json:"version"`        // of these
	Since     time.Time             `json:"since,omitzero"` // it is in force
	InForce   *bool                 `json:"in_force"`       // the hash as it is now; null: it does not follow that
	Rules     int                   `json:"rules"`
	Called    int                   `json:"called"`
	Findings  []bridge.FindingGroup `json:"findings"`
}

func (l processLine) row() []string {
	follows, clock, alive, found := cmp.Or(l.Overrides, "-"), "-", "yes", 0
	if l.InForce != nil && *l.InForce {
		follows = "in force"
	} else if l.InForce != nil {
		follows = "version " + cmp.Or(l.Version, "none")
	}
	if behind := time.Duration(l.BehindMS) * time.Millisecond; operate.Apart(behind) {
		clock = operate.ClockText(behind)
	}
	if l.Silent {
		alive = "not since " + l.Alive.UTC().Format(time.RFC3339)
	}
	for _, g := range l.Findings {
		found += g.Count
	}
	return rowOf(l.Name, cmp.Or(l.Build, "-"), alive, clock, follows, fmt.Sprintf("%d/%d", l.Called, l.Rules), found)
}

func (s *session) listProcesses(ctx context.Context, _ []string) error {
	processes, err := s.Processes(ctx)
	if err != nil {
		return err
	}
	if len(processes) == 0 {
		return nothingf("no process reports to this Redis in %s: each with rules does ten seconds after its start, unless it has WithoutReports", operate.Namespaces(s.Namespace))
	}
	source, version := "", ""
	if s.Hash != "" {
		editor := override.NewEditor(s.Client, s.Hash)
		source = editor.Source()
		if version, err = editor.Version(ctx); err != nil {
			s.logger().Printf("which overrides are to be in force is not known: %v", s.explained(err))
		}
	}
	lines := make([]processLine, len(processes))
	for i, p := range processes {
		called := len(slices.DeleteFunc(slices.Clone(p.Rules), func(r bridge.ProcessRule) bool { return !r.Called }))
		lines[i] = processLine{p.Name, p.Host, p.Build, p.Alive, p.Silent, p.Behind.Milliseconds(), p.Overrides, p.Version, p.Since, nil, len(p.Rules), called, p.Findings}
		if source != "" && p.Overrides == source {
			lines[i].InForce = new(version != "" && p.Version == version)
		}
	}
	if err := printEach(&s.printer, "PROCESS BUILD ALIVE CLOCK OVERRIDES CALLED FINDINGS", lines, processLine.row); err != nil {
		return err
	}
	var differ []string
	for _, d := range operate.SurveyOf(processes, nil).Differ {
		differ = append(differ, fmt.Sprintf("rule %s differs: %v", printed.Text(d.Rule), d))
	}
	s.WarnOf(differ)
	return nil
}

// sayDiffering says which processes have which forms of some rules: rows have the forms alone.
func (s *session) sayDiffering(names ...string) {
	var differ []string
	for i, name := range names {
		if d, is := s.Differing(name); is && !slices.Contains(names[:i], name) {
			differ = append(differ, fmt.Sprintf("rule %s differs among processes, and here counts as in the listing: %v", printed.Text(name), d))
		}
	}
	s.WarnOf(differ)
}

// doctor looks for what may keep limits from working, and says what helps.
func (s *session) doctor(ctx context.Context, _ []string) error {
	ask := s.findings
	if !isPage(s.rules) {
		ask = nil
	}
	found, failed := s.Doctor(ctx, ask)
	if found == nil && failed != nil {
		return failed
	}
	if err := printEach(&s.printer, "CHECK STATE WHERE SAYS REMEDY", found, func(f operate.Check) []string {
		return []string{f.Check, f.State, cmp.Or(f.Where, "-"), f.Says, cmp.Or(f.Remedy, "-")}
	}); err != nil {
		return err
	}
	if bad := len(slices.DeleteFunc(found, func(f operate.Check) bool { return f.State != "bad" })); bad > 0 && failed == nil {
		return foreign{fmt.Errorf("%d checks say that something is wrong", bad)}
	}
	return failed
}

// findings asks the program whose page has the rules what it has found itself.
func (s *session) findings(ctx context.Context) ([]bridge.FindingGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	state, err := s.askPage(ctx, "-rules", s.rules, "api/state", "application/json")
	if err != nil {
		return nil, err
	}
	defer state.Close()
	var answer struct {
		Findings struct {
			Findings []bridge.FindingGroup
		}
	}
	err = json.NewDecoder(state).Decode(&answer)
	return answer.Findings.Findings, err
}
