package report

import "testing"

// A code belongs to one line, and what is found has a remedy.
func TestCodes(t *testing.T) {
	found := map[string]bool{}
	for _, l := range lines {
		if found[l.code] || l.text == "" {
			t.Errorf("%+v", l)
		}
		found[l.code] = true
	}
	if len(found) < 10 {
		t.Errorf("there are %d codes", len(found))
	}
}
