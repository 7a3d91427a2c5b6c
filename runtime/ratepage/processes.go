package ratepage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
)

const (
	// maxProcesses is how many processes are shown.
	maxProcesses = 50
	// reportsAge is for how long what processes have told Redis serves all viewers.
	reportsAge = 2 * time.Second
)

// A processesView is what the processes that report to Redis have in force.
type processesView struct {
	Processes []processView `json:"processes"`      // those first in which the overrides are not in force
	More      int           `json:"more,omitempty"` // that are left out
	Count     int           `json:"count"`
	// Follow is how many follow the hash that the page edits, and InForce how many of these have in
	// force what it says now. Without an editor both are 0.
	Follow  int    `json:"follow"`
	InForce int    `json:"in_force"`
	Hash    string `json:"hash,omitempty"` // as processes name it; empty: the page has no editor
	// Differ says which rules processes have in several forms, and which have which.
	Differ []string `json:"differ,omitempty"`
}

// A processView is the last report of a process.
type processView struct {
	Name      string    `json:"name"`
	At        time.Time `json:"at"`
	Overrides string    `json:"overrides"` // where they come from; empty: there are none
	InForce   bool      `json:"in_force"`  // what the hash says
	Findings  int       `json:"findings"`  // that it has
	Build     string    `json:"build,omitempty"`
	Silent    bool      `json:"silent,omitempty"` // it gives no sign of life any more
	// BehindMS is how far its clock is from that of Redis, if that is far.
	BehindMS float64 `json:"behind_ms,omitempty"`
}

// A sourceEditor is an editor of what processes follow, as [override.Editor] is.
type sourceEditor interface {
	Source() string
	Version(context.Context) (string, error)
}

// serveProcesses answers with the processes that report to Redis.
func (p *Page) serveProcesses(w http.ResponseWriter, r *http.Request) {
	p.processesCache.serve(w, r, reportsAge, p.processes)
}

func (p *Page) processes(ctx context.Context, _ time.Time) ([]byte, error) {
	v, version, known := processesView{Processes: []processView{}}, "", map[string]bool{}
	if p.actions != nil {
		if editor, is := p.actions.editor.(sourceEditor); is {
			v.Hash = editor.Source()
			version, _ = editor.Version(ctx) // what is rejected is in force nowhere
		}
	}
	var all []bridge.Process
	for _, l := range p.all() {
		reports, err := bridge.LimiterOf(l).Processes(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range reports {
			if known[r.Name] { // limiters may share a namespace
				continue
			}
			known[r.Name] = true
			all = append(all, r)
			is := processView{Name: r.Name, At: r.Alive, Overrides: r.Overrides, Build: r.Build, Silent: r.Silent,
				InForce: v.Hash != "" && r.Overrides == v.Hash && version != "" && r.Version == version}
			for _, g := range r.Findings {
				is.Findings += g.Count
			}
			if operate.Apart(r.Behind) {
				is.BehindMS = milliseconds(r.Behind)
			}
			v.Processes = append(v.Processes, is)
		}
	}
	f := operate.Follow(all, v.Hash, version)
	v.Count, v.Follow, v.InForce = f.Processes, f.Follow, f.InForce
	for _, d := range operate.SurveyOf(all, nil).Differ {
		v.Differ = append(v.Differ, fmt.Sprintf("%s: %v", d.Rule, d))
	}
	slices.SortFunc(v.Processes, func(a, b processView) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(v.Processes, func(a, b processView) int {
		switch {
		case a.InForce == b.InForce:
			return 0
		case b.InForce:
			return -1
		}
		return 1
	})
	v.More = max(0, len(v.Processes)-maxProcesses)
	v.Processes = v.Processes[:len(v.Processes)-v.More]
	return encode(v), nil
}
