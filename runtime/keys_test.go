package runtime_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestParseKey reads the texts of keys of all kinds back, also with a byte written
// as an operator may write it.
func TestParseKey(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.StringMatching(`[a-z0-9:%{}*]{0,60}`), rapid.String(), rapid.StringMatching(`x{90,300}`))
	rapid.Check(t, func(t *rapid.T) {
		key := runtime.NewKey()
		for _, s := range rapid.SliceOfN(part, 0, 4).Draw(t, "parts") {
			key.AddString(s)
		}
		for _, text := range []string{key.String(), strings.ReplaceAll(key.String(), "*", "%2A")} {
			parsed, err := rule.ParseKey(text)
			if len(text) > 4096 {
				continue
			}
			if err != nil {
				t.Fatalf("ParseKey(%q): %v", text, err)
			}
			if got := parsed.String(); got != key.String() {
				t.Fatalf("ParseKey(%q) = %q, want %q", text, got, key)
			}
		}
	})
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a%zz":                               "% without two",
		"a%2":                                "% without two",
		"a%61":                               "no key has the escape %61: write a",
		"a{b}":                               `no key has the byte '{': write %7B`,
		"a\nb":                               `write %0A`,
		"%3a":                                "% without two",
		"%sha256-00":                         "% without two",
		strings.Repeat("x", 4097):            "the most is 4096",
		"a%invalid":                          "% without two",
		"%invalidate":                        "% without two",
		"%sha256-" + strings.Repeat("A", 64): "% without two",
	} {
		if _, err := rule.ParseKey(text); !errors.Is(err, runtime.ErrInvalidKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKey(%.20q): %v, want ErrInvalidKey with %q", text, err, want)
		}
	}
}
