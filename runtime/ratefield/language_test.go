package ratefield_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime/ratefield"
)

func TestLanguages(t *testing.T) {
	for accept, want := range map[string]string{
		"":                         "",
		"*":                        "",
		"de":                       "de",
		"fr-CH, fr;q=0.9, en;q=.8": "fr-ch fr en",
		"en;q=0.2, zh-Hant-TW":     "zh-hant-tw zh-hant zh en",
		"de-x-Bayern":              "de-x-bayern de", // x only announces
		"a-b-c":                    "a-b-c a",
		"de;q=0, en":               "en",
		"de\ten":                   "",
	} {
		if got := strings.Join(ratefield.Languages([]string{accept}), " "); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

// Whatever a client sends, few short tags come out, each once.
func FuzzLanguages(f *testing.F) {
	f.Add("fr-CH, fr;q=0.9, *;q=0.5")
	f.Add(strings.Repeat("a-b-c-d-e-f-g-h-i,", 60))
	f.Fuzz(func(t *testing.T, accept string) {
		tags := ratefield.Languages(strings.Split(accept, "\n"))
		if len(tags) > 16*18 {
			t.Fatalf("%d tags", len(tags))
		}
		for i, tag := range tags {
			if tag == "" || len(tag) > 35 || slices.Contains(tags[:i], tag) || strings.Trim(tag, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Fatalf("%q of %q", tag, tags)
			}
		}
	})
}
