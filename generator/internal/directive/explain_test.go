package directive

import (
	"slices"
	"testing"
)

// Every option has a row in explanations, but for those that name something, and for
// those that other rows speak of.
func TestSaysAll(t *testing.T) {
	elsewhere := []string{"window", "prefix", "name", "message", "deny", "ctx", "type", "rate", "tz", "anchor", "keep", "weight", "headroom"}
	for _, o := range Options {
		if len(o.explain) == 0 != slices.Contains(elsewhere, o.Name) {
			t.Errorf("option %s says something about %d topics", o.Name, len(o.explain))
		}
		for topic := range o.explain {
			if !slices.Contains(Topics, topic) {
				t.Errorf("option %s says something about %q, which no explanation shows", o.Name, topic)
			}
		}
	}
}
