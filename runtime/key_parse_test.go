package runtime_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
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
			parsed, err := runtime.ParseKey(text)
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

// TestParseKeyFindsTheCount charges keys, and looks at them and resets them by
// what stands in the Redis key.
func TestParseKeyFindsTheCount(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "orders.Create", Max: 5, Window: runtime.MaxWindow}
	limiter := inMemory()
	for _, key := range []*runtime.Key{
		runtime.NewKey(),
		runtime.NewKey().AddString("ann").AddInt(7),
		runtime.NewKey().AddString("").AddString("a:b%{}\n*é"),
		runtime.NewKey().AddString(strings.Repeat("long ", 90)), // a hash in Redis
	} {
		taken(t, limiter, rule.Limit(key))
		parsed, err := runtime.ParseKey(key.String())
		if err != nil {
			t.Fatal(err)
		}
		if d, err := limiter.Peek(t.Context(), rule.Limit(parsed)); err != nil || d.Remaining != 4 {
			t.Errorf("key %q: %d remaining, %v, want 4", key, d.Remaining, err)
		}
		if err := limiter.Reset(t.Context(), rule.Limit(parsed)); err != nil {
			t.Error(err)
		}
		if d, err := limiter.Peek(t.Context(), rule.Limit(key)); err != nil || d.Remaining != 5 {
			t.Errorf("key %q after its reset: %d remaining, %v, want 5", key, d.Remaining, err)
		}
	}
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
		"%invalid":                           "% without two",
		"%sha256-" + strings.Repeat("A", 64): "% without two",
	} {
		if _, err := runtime.ParseKey(text); !errors.Is(err, runtime.ErrInvalidKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKey(%.20q): %v, want ErrInvalidKey with %q", text, err, want)
		}
	}
}
