package expr

import "testing"

func FuzzBlankMarks(f *testing.F) {
	for _, seed := range []string{"#id", "#0.x", `f("#", '#', #a)`, "##", "#", "#é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, marks, bad := blankMarks(text)
		if bad >= 0 {
			if text[bad] != '#' {
				t.Errorf("%q: error at byte %d", text, bad)
			}
			return
		}
		if len(out) != len(text) {
			t.Errorf("%q became %q: columns moved", text, out)
		}
		for i := range marks {
			if i >= len(out) {
				t.Errorf("%q: mark at %d of %q", text, i, out)
			}
		}
	})
}
