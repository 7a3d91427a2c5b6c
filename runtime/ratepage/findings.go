package ratepage

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
)

// maxFindings is how many findings are shown.
const maxFindings = 100

// A findingView is a [runtime.Finding].
type findingView struct {
	Code   string    `json:"code"`
	Rule   string    `json:"rule,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Text   string    `json:"text"`
	Help   string    `json:"help"`
	Since  time.Time `json:"since"`
}

// A findingsView is what is declared and does not hold.
type findingsView struct {
	Findings []findingView `json:"findings"`
	More     int           `json:"more,omitempty"` // that are left out
}

// findings returns what the limiters have found. What belongs to none is in the list of each.
func (p *Page) findings() findingsView {
	p.attached.Lock()
	limiters := slices.Clone(p.limiters)
	if last := p.last.Value(); last != nil {
		limiters = append(limiters, last)
	}
	p.attached.Unlock()
	v := findingsView{Findings: []findingView{}}
	told := map[runtime.Finding]bool{}
	for _, l := range limiters {
		for _, f := range l.Findings() {
			switch {
			case told[f]:
			case len(v.Findings) >= maxFindings:
				v.More++
			default:
				v.Findings = append(v.Findings, findingView(f))
			}
			told[f] = true
		}
	}
	return v
}
