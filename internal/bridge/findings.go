package bridge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

// A FindingGroup is the findings of one code.
type FindingGroup struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Help string `json:"help"`
	// Count is how many there are, and First what the first of them are about: rules and details.
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
	// Since is when the oldest was found.
	Since time.Time `json:"since"`
}

// firstFindings is how many findings of a code are named.
const firstFindings = 10

// GroupFindings groups findings by their codes: those of most rules first.
func GroupFindings(all []observe.Finding) []FindingGroup {
	groups := []FindingGroup{}
	for _, f := range all {
		i := slices.IndexFunc(groups, func(g FindingGroup) bool { return g.Code == f.Code })
		if i < 0 {
			i, groups = len(groups), append(groups, FindingGroup{Code: f.Code, Text: f.Text, Help: f.Help, Since: f.Since})
		}
		g := &groups[i]
		g.Count++
		if f.Since.Before(g.Since) {
			g.Since = f.Since
		}
		if about := strings.TrimSpace(f.Rule + " " + f.Detail); about != "" && len(g.First) < firstFindings {
			g.First = append(g.First, about)
		}
	}
	slices.SortStableFunc(groups, func(a, b FindingGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}
