package emit

import (
	"os"
	"regexp"
	"testing"
)

// Generated code may be written in the language that the runtime is.
func TestLanguage(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod); m == nil || "go"+string(m[1]) != language {
		t.Errorf("generated code is written in %s, and the runtime in %q", language, m)
	}
}

func TestBuildLine(t *testing.T) {
	for source, want := range map[string]string{
		"package x":                        "",
		"//go:build linux\n\npackage x":    "//go:build linux",
		"//go:build !go1.27\n\npackage x":  "//go:build !go1.27",
		"//go:build go1.27\n\npackage x":   "//go:build go1.27",
		"//go:build " + language + "\n":    "//go:build " + language,
		"//go:build go1.2 || x\n":          "//go:build go1.2 || x",
		"//go:build go1.2\r\n\r\n":         "//go:build go1.2 && " + language,
		"//go:build a || (b && go1.22)\n":  "//go:build a || (b && go1.22)",
		"//go:build go1.1 || go1.22\n":     "//go:build (go1.1 || go1.22) && " + language,
		"//go:build go1.22 && (a || !b)\n": "//go:build go1.22 && (a || !b) && " + language,
	} {
		if got := buildLine([]byte(source)); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}
