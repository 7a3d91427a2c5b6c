package ratepage

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
)

const (
	// maxMachines is how many machines are shown, each with one version of a program.
	maxMachines = 50
	// maxHot is how many of the keys are shown that Redis is asked about most, and maxSums of how many rules the calls.
	maxHot  = 10
	maxSums = 300
	// reportsAge is for how long what processes have told Redis serves all viewers.
	reportsAge = 2 * time.Second
)

// A processesView is what the processes that report to Redis have in force, and the calls of all of them.
type processesView struct {
	Machines []machineView `json:"machines"`       // the worst first
	More     int           `json:"more,omitempty"` // that are left out
	Count    int           `json:"count"`          // processes that give signs of life
	// Follow is how many follow the hash that the page edits, and InForce how many of these have in
	// force what it says now. Without an editor both are 0.
	Follow  int              `json:"follow"`
	InForce int              `json:"in_force"`
	Hash    string           `json:"hash,omitempty"`   // as processes name it; empty: the page has no editor
	Differ  []differenceView `json:"differ,omitempty"` // the rules that processes have in several forms
	Calls   operate.Calls    `json:"calls"`
}

// A differenceView is a rule that processes have in several forms.
type differenceView struct {
	Rule   string `json:"rule"`
	Limits string `json:"limits"` // as in "15 or 30 in 10s"
	Text   string `json:"text"`   // which processes have which
}

// A machineView is the processes of one version of a program on one machine.
type machineView struct {
	Host    string `json:"host"`
	Build   string `json:"build,omitempty"`
	Count   int    `json:"count"`            // that give signs of life
	Silent  int    `json:"silent,omitempty"` // and that do so no more
	InForce int    `json:"in_force"`         // in how many is what the hash says
	Lag     int    `json:"lag,omitempty"`    // and in how many, that follow it, it is not
	// Others are what the others follow.
	Others   []string  `json:"others,omitempty"`
	Findings int       `json:"findings,omitempty"` // that they have
	BehindMS float64   `json:"behind_ms,omitempty"`
	At       time.Time `json:"at"` // the last sign of life
}

// A sourceEditor is an editor of what processes follow, as [override.Editor] is.
type sourceEditor interface {
	Source() string
	Version(context.Context) (string, error)
}

// reports returns what processes have told Redis. Limiters may share a namespace.
func (p *Page) reports(ctx context.Context) ([]bridge.Process, error) {
	known := make(map[string]bridge.Process)
	for _, l := range p.all() {
		reports, err := bridge.LimiterOf(l).Processes(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range reports {
			known[r.Name] = r
		}
	}
	return slices.Collect(maps.Values(known)), nil
}

func (p *Page) serveProcesses(w http.ResponseWriter, r *http.Request) {
	p.processesCache.serve(w, r, reportsAge, p.processes)
}

func (p *Page) processes(ctx context.Context, _ time.Time) ([]byte, error) {
	v, version := processesView{}, ""
	if p.actions != nil {
		if editor, is := p.actions.editor.(sourceEditor); is {
			v.Hash = editor.Source()
			version, _ = editor.Version(ctx) // what is rejected is in force nowhere
		}
	}
	all, err := p.reports(ctx)
	if err != nil {
		return nil, err
	}
	f := operate.Follow(all, v.Hash, version)
	v.Count, v.Follow, v.InForce = f.Processes, f.Follow, f.InForce
	for _, d := range operate.SurveyOf(all, nil).Differ {
		v.Differ = append(v.Differ, differenceView{d.Rule, d.Limits(), d.String()})
	}
	v.Machines = machines(all, v.Hash, version)
	v.More = max(0, len(v.Machines)-maxMachines)
	v.Machines = v.Machines[:len(v.Machines)-v.More]
	v.Calls = p.callsOf(all)
	return encode(v), nil
}

// callsOf returns the calls of processes. A page that shows no keys has none.
func (p *Page) callsOf(all []bridge.Process) operate.Calls {
	calls := operate.CallsOf(all)
	calls.Keys = calls.Keys[:min(len(calls.Keys), maxHot)]
	calls.Rules = calls.Rules[:min(len(calls.Rules), maxSums)]
	if p.keys == nil {
		calls.Keys = nil
	}
	for i := range calls.Keys {
		k := &calls.Keys[i]
		if found := p.named(k.Rule); len(found) > 0 {
			k.Remedy = operate.Remedy(found[0].Rule)
		}
		k.Key = p.shownKey(k.Key)
	}
	return calls
}

// machines puts processes together that are of one version on one machine.
func machines(all []bridge.Process, hash, version string) []machineView {
	byHost := make(map[[2]string][]bridge.Process)
	for _, r := range all {
		host := [2]string{cmp.Or(r.Host, r.Name), r.Build}
		byHost[host] = append(byHost[host], r)
	}
	list := make([]machineView, 0, len(byHost))
	for host, of := range byHost {
		f := operate.Follow(of, hash, version)
		m := machineView{Host: host[0], Build: host[1], Count: f.Processes, Silent: len(f.Silent), InForce: f.InForce, Lag: len(f.Lagging), Others: f.Others}
		for _, r := range of {
			if r.Alive.After(m.At) {
				m.At = r.Alive
			}
			for _, g := range r.Findings {
				if g.Until.IsZero() && !r.Silent {
					m.Findings += g.Count
				}
			}
			if operate.Apart(r.Behind) && !r.Silent {
				m.BehindMS = milliseconds(r.Behind)
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b machineView) int { // those with silent processes first, then those that lag or follow nothing
		return cmp.Or(cmp.Compare(b.Silent, a.Silent), cmp.Compare(b.Lag, a.Lag), cmp.Compare(len(b.Others), len(a.Others)),
			cmp.Compare(b.Findings, a.Findings), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Build, b.Build))
	})
	return list
}
