package override

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// FuzzHash reads any fields of a hash. It neither panics nor says too much, and a field
// means what the same value means for that rule in a file.
func FuzzHash(f *testing.F) {
	f.Add("search", `{"max": 5, "window": "5s", "mode": "shadow"}`, "*", `{"enabled": true}`)
	f.Add(`["search", "premium-*"]`, `{"max": 50}`, "search", `{"max": 1}`)
	f.Add("search", `{"max": 5, "until": "2999-01-01T00:00:00Z"}`, "*", `{"enabled": false}`)
	f.Add(`["search"]`, `{"enabled": false}`, "search", "{}")
	f.Add("[", "", `["*","x"]`, "null")
	f.Fuzz(func(t *testing.T, field, value, field2, value2 string) {
		if _, err := parseHash(map[string]string{field: value, field2: value2}); err != nil && len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		target, err := targetOf(field)
		if err != nil || target.Keys || field == All {
			return
		}
		fromHash, err := parseHash(map[string]string{field: value})
		if err != nil {
			return
		}
		name, err := json.Marshal(target.Rule)
		limittest.OK(t, err)
		fromFile, err := parseFile("a.json", []byte(`{"rules": {`+string(name)+`: `+value+`}}`))
		if err != nil {
			t.Skip("the name of a rule in a file is UTF-8: ", err)
		}
		if diff := cmp.Diff(fromHash, fromFile, cmp.AllowUnexported(reading{}, statement{})); diff != "" {
			t.Errorf("%q: %q means something else in a file (-hash +file):\n%s", field, value, diff)
		}
	})
}
