package limitfields

import (
	"slices"
	"testing"

	"github.com/dunglas/httpsfv"
)

// FuzzMembers wants lists to be understood as RFC 9651 has them.
func FuzzMembers(f *testing.F) {
	const most = 16
	for _, value := range []string{`"a";q=5;w=60;pk=:aGk=:, "b";q=7`, `"a";r=3;t=2`, "limit=1, remaining=0, reset=9", "100, 100;w=60", `"a\"\\b";q=1`, `"a";q=1,`} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > maxField {
			return
		}
		list, err := httpsfv.UnmarshalList([]string{value})
		if err != nil {
			return
		}
		got := members([]string{value}, most)
		for i, m := range list {
			item, ok := m.(httpsfv.Item)
			if !ok || i >= most || slices.ContainsFunc(list, func(m httpsfv.Member) bool { _, ok := m.(httpsfv.InnerList); return ok }) {
				return
			}
			if i >= len(got) {
				t.Fatalf("%q: %d of %d members", value, len(got), len(list))
			}
			if name, ok := item.Value.(string); ok && name != got[i].name {
				t.Fatalf("%q: name %q, want %q", value, got[i].name, name)
			}
			if q, ok := item.Params.Get("q"); ok {
				if n, ok := q.(int64); ok && n >= 0 && n != got[i].number("q") {
					t.Fatalf("%q: q %d, want %d", value, got[i].number("q"), n)
				}
			}
		}
	})
}
