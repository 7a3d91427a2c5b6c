package ratepage

import (
	"slices"

	"github.com/rategen/rategen/runtime/observe"
)

// maxFindings is how many findings are shown.
const maxFindings = 100

// A findingsView is what is declared and does not hold.
type findingsView struct {
	Findings []observe.Finding `json:"findings"`
	More     int               `json:"more,omitempty"` // that are left out
}

// findings returns what the limiters have found. What belongs to none is in the list of each.
func (p *Page) findings() findingsView {
	p.attached.Lock()
	limiters := slices.Clone(p.limiters)
	if last := p.last.Value(); last != nil {
		limiters = append(limiters, last)
	}
	p.attached.Unlock()
	v := findingsView{Findings: []observe.Finding{}}
	told := map[observe.Finding]bool{}
	for _, l := range limiters {
		for _, f := range l.Findings() {
			switch {
			case told[f]:
			case len(v.Findings) >= maxFindings:
				v.More++
			default:
				v.Findings = append(v.Findings, f)
			}
			told[f] = true
		}
	}
	return v
}
