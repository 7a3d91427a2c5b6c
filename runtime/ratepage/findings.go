package ratepage

import (
	"slices"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/observe"
)

// maxFindings is how many findings are shown, each of a code of its own.
const maxFindings = 10

// A findingsView is what is declared and does not hold.
type findingsView struct {
	Findings []bridge.FindingGroup `json:"findings"`
	More     int                   `json:"more,omitempty"` // codes that are left out
}

// findings returns what the limiters have found. What belongs to none is in the list of each.
func (p *Page) findings() findingsView {
	p.attached.Lock()
	limiters := slices.Clone(p.limiters)
	if last := p.last.Value(); last != nil {
		limiters = append(limiters, last)
	}
	p.attached.Unlock()
	var all []observe.Finding
	told := map[observe.Finding]bool{}
	for _, l := range limiters {
		for _, f := range l.Findings() {
			if !told[f] {
				all = append(all, f)
			}
			told[f] = true
		}
	}
	groups := bridge.GroupFindings(all)
	shown := groups[:min(len(groups), maxFindings)]
	return findingsView{shown, len(groups) - len(shown)}
}
