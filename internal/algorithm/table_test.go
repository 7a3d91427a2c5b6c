package algorithm

import (
	"slices"
	"testing"
)

// TestRows wants every row to be complete, and no two to share keys.
func TestRows(t *testing.T) {
	suffixes := map[string]Algorithm{}
	for a := range Algorithms {
		r := a.Row()
		plain := RowByName(r.Name)
		other, shared := suffixes[r.Suffix]
		suffixes[r.Suffix] = a
		if shared {
			t.Errorf("the keys of algorithm %d end as those of %d: %q", a, other, r.Suffix)
		}
		if r.Name == "" || r.State == 0 || r.Words.Max == "" || r.Is(Queues) == (r.Words.Refusal != "") {
			t.Errorf("the row of algorithm %d lacks its name, state or words: %+v", a, r)
		}
		if plain.Need != 0 || plain.Most == 0 || plain.MostCost == 0 || plain.Seconds == 0 || plain.Debt == "" || plain != r && r.Most != 0 {
			t.Errorf("%s: the first row, and no other, has what all share, and needs nothing", r.Name)
		}
		if got := plain.Choose(r.Need); got != a {
			t.Errorf("a %s with needs %b is counted as algorithm %d, not %d", r.Name, r.Need, got, a)
		}
		if !slices.ContainsFunc(Scripts[:], func(s Script) bool { return s.Name == r.Script }) {
			t.Errorf("algorithm %d has no script %q", a, r.Script)
		}
	}
	if last := Scripts[len(Scripts)-1].Name; last != Returns {
		t.Errorf("the last script is %s: %s has to stay behind all others", last, Returns)
	}
}
