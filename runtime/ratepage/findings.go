package ratepage

import (
	"slices"

	"github.com/rategen/rategen/internal/bridge"
)

// maxFindings is how many findings are shown, each of a code of its own, and how many that have ended.
const maxFindings = 10

// A findingsView is what is declared and does not hold.
type findingsView struct {
	Findings []bridge.FindingGroup `json:"findings"`        // the worst first
	Ended    []bridge.FindingGroup `json:"ended,omitempty"` // the last one first
	More     int                   `json:"more,omitempty"`  // codes that are left out
}

// findings returns what the limiters have found, which touches calls of rules. What belongs to none is in
// the list of each.
func (p *Page) findings(calls map[string]int64) (v findingsView) {
	p.attached.Lock()
	limiters := slices.Clone(p.limiters)
	if last := p.last.Value(); last != nil {
		limiters = append(limiters, last)
	}
	p.attached.Unlock()
	var all []bridge.Found
	told := map[bridge.Found]bool{}
	for _, l := range limiters {
		for _, f := range bridge.LimiterOf(l).Found() {
			f.Times = 0 // which changes all the time, and is not shown
			if !told[f] {
				all = append(all, f)
			}
			told[f] = true
		}
	}
	groups := bridge.GroupFindings(all, calls)
	ended := slices.IndexFunc(groups, func(g bridge.FindingGroup) bool { return !g.Until.IsZero() })
	if ended < 0 {
		ended = len(groups)
	}
	v.Findings = groups[:min(ended, maxFindings)]
	v.More, v.Ended = ended-len(v.Findings), groups[ended:min(len(groups), ended+maxFindings)]
	return v
}
