package main

import (
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

// A processLine is a process that reports.
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
		clock = behind.Round(time.Second).String() + " behind"
	}
	if l.Silent {
		alive = "not since " + l.Alive.UTC().Format(time.RFC3339)
	}
	for _, g := range l.Findings {
		found += g.Count
	}
	return rowOf(l.Name, cmp.Or(l.Build, "-"), alive, clock, follows, fmt.Sprintf("%d/%d", l.Called, l.Rules), found)
}

// A processesCommand lists the processes that report to Redis.
type processesCommand struct{ session }

func (c *processesCommand) about() about {
	return about{
		name: "processes", short: "list the processes that report, and what each has in force", needs: prints | needRedis,
		long: "Lists the limiters that report to this Redis in the namespace: their machine and the version of the program, whether they live, how far their clock is behind that of Redis, which version of the overrides they have, how many of their rules were called, and how many findings they have, see ratectl doctor. " +
			"A process gives a sign of life every 5 seconds, and is gone from the list four minutes after its last report.",
	}
}

func (c *processesCommand) run(ctx context.Context, _ []string) error {
	processes, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	if len(processes) == 0 {
		return nothingf("no process reports to this Redis in %s: each with rules does ten seconds after its start, unless it has WithoutReports", operate.Namespaces(c.Namespace))
	}
	source, version := "", ""
	if c.Hash != "" {
		editor := override.NewEditor(c.Client, c.Hash)
		source = editor.Source()
		if version, err = editor.Version(ctx); err != nil {
			c.logger().Printf("which overrides are to be in force is not known: %v", c.explained(err))
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
	if err := printEach(&c.printer, "PROCESS BUILD ALIVE CLOCK OVERRIDES CALLED FINDINGS", lines, processLine.row); err != nil {
		return err
	}
	for _, d := range operate.SurveyOf(processes, nil).Differ {
		c.logger().Printf("rule %s differs: %v", printed.Text(d.Rule), d)
	}
	return nil
}

// sayDiffering says which processes have which forms of some rules: rows have the forms alone.
func (s *session) sayDiffering(names ...string) {
	for i, name := range names {
		if d, is := s.Differing(name); is && !slices.Contains(names[:i], name) {
			s.logger().Printf("rule %s differs among processes, and here counts as in the listing: %v", printed.Text(name), d)
		}
	}
}
