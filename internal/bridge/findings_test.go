package bridge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime/observe"
)

// TestGroupFindings wants the worst first, what is over last, and of each the share of calls that it touches.
func TestGroupFindings(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	found := func(code, rule string, since, until int64, severe bool) Found {
		f := Found{Finding: observe.Finding{Code: code, Rule: rule, Since: at(since)}, Times: 2, Severe: severe}
		if until > 0 {
			f.Until = at(until)
		}
		return f
	}
	got := GroupFindings([]Found{
		found("few", "a", 7, 0, false), found("most", "b", 9, 0, false), found("most", "c", 8, 0, false), found("most", "b", 10, 0, false),
		found("most", "a", 1, 3, false), found("most", "a", 2, 5, false), found("severe", "", 9, 0, true),
	}, map[string]int64{"a": 10, "b": 60, "c": 30})
	want := []FindingGroup{
		{Code: "severe", Count: 1, Since: at(9), Times: 2, Severe: true},
		{Code: "most", Count: 3, First: []string{"b", "c"}, Since: at(8), Times: 6, Share: 0.9},
		{Code: "few", Count: 1, First: []string{"a"}, Since: at(7), Times: 2, Share: 0.1},
		{Code: "most", Count: 2, First: []string{"a"}, Since: at(1), Until: at(5), Times: 4, Share: 0.1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
