package bridge

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

// Found is a finding that lasts, or that is over.
type Found struct {
	observe.Finding
	Until  time.Time // zero: it lasts
	Times  int64     // how often it was made, as far as it is made with each call that meets it
	Severe bool      // limits do not hold
}

// A FindingGroup is the findings of one code that last, or those that are over.
type FindingGroup struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Help string `json:"help"`
	// Count is how many there are, and First what the first of them are about: rules and details.
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
	// Since is when the oldest was found, and Until when the last of those ended that are over.
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`
	Times  int64     `json:"times,omitempty"`
	Severe bool      `json:"severe,omitempty"`
	// Share is how much of all calls is of the rules that it is about, since the program started, rounded up, as far as
	// calls are counted.
	Share float64 `json:"share,omitempty"`
}

// firstFindings is how many findings of a code are named.
const firstFindings = 10

// GroupFindings groups findings by their codes, the worst first and what is over last. Calls are those of
// each rule.
func GroupFindings(all []Found, calls map[string]int64) []FindingGroup {
	type of struct {
		code string
		over bool
	}
	groups, index, total := []FindingGroup{}, map[of]int{}, int64(0)
	for _, n := range calls {
		total += n
	}
	touched := map[of]map[string]bool{}
	for _, f := range all {
		is := of{f.Code, !f.Until.IsZero()}
		i, known := index[is]
		if !known {
			i, touched[is] = len(groups), map[string]bool{}
			index[is], groups = i, append(groups, FindingGroup{Code: f.Code, Text: f.Text, Help: f.Help, Since: f.Since, Severe: f.Severe})
		}
		g := &groups[i]
		g.Count++
		g.Times += f.Times
		if f.Since.Before(g.Since) {
			g.Since = f.Since
		}
		if f.Until.After(g.Until) {
			g.Until = f.Until
		}
		if about := strings.TrimSpace(f.Rule + " " + f.Detail); about != "" && len(g.First) < firstFindings && !slices.Contains(g.First, about) {
			g.First = append(g.First, about)
		}
		if !touched[is][f.Rule] && total > 0 {
			touched[is][f.Rule] = true
			g.Share += float64(calls[f.Rule]) / float64(total)
		}
	}
	for i := range groups { // so that it seldom changes
		groups[i].Share = math.Ceil(groups[i].Share*100) / 100
	}
	slices.SortStableFunc(groups, WorstFirst)
	return groups
}

// WorstFirst orders groups: what is over last, and before it what has limits not hold and concerns most calls.
func WorstFirst(a, b FindingGroup) int {
	rank := func(g FindingGroup) int {
		if !g.Until.IsZero() {
			return 2
		}
		if !g.Severe {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Share, a.Share), cmp.Compare(b.Count, a.Count), b.Until.Compare(a.Until))
}
