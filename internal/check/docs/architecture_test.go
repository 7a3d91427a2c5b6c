package docs_test

import (
	"path"
	"strings"
	"testing"
)

// Each way through the code is a list of at most twelve files.
func TestWays(t *testing.T) {
	const most = 12
	ways := map[string]int{
		"From directive to code": 0, "From call to decision": 0, "Settling a decision": 0,
		"Overrides and waiting calls": 0, "Batches without an answer": 0,
	}
	for _, item := range page(t, "ARCHITECTURE.md").Items {
		if _, ok := ways[item.Section]; !ok {
			continue
		}
		ways[item.Section]++
		if len(item.Links) == 0 || path.Ext(item.Links[0].Target) == "" {
			t.Errorf("%s: item %d names no file", item.Section, ways[item.Section])
		}
	}
	for way, files := range ways {
		if files < 2 || files > most {
			t.Errorf("%s: %d files, want at most %d", way, files, most)
		}
	}
}

// The tests that ARCHITECTURE.md names exist where it says. A link to a test is
// [`TestName`](file), and one to a case in a document is [`"name"`](file).
func TestNamedTests(t *testing.T) {
	named := 0
	for _, l := range page(t, "ARCHITECTURE.md").Links {
		name, ok := strings.CutPrefix(l.Text, "`")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "`")
		want := ""
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			want = "\nfunc " + name + "("
		} else if strings.HasPrefix(name, `"`) {
			want = "\ntest " + strings.Trim(name, `"`)
		} else {
			continue
		}
		named++
		if !strings.Contains(content(t, l.Target), want) {
			t.Errorf("ARCHITECTURE.md:%d: %s is not in %s", l.Line, name, l.Target)
		}
	}
	if named < 20 {
		t.Errorf("ARCHITECTURE.md names %d tests", named)
	}
}
