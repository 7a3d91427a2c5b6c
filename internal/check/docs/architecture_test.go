package docs_test

import (
	"strings"
	"testing"
)

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
