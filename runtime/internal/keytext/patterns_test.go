package keytext

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/spec"
	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		written, text string
		prefix        bool
	}{
		{"", "", false},
		{"*", "", true},
		{"tenant-7", "tenant-7", false},
		{"premium-*", "premium-", true},
		{"acme:*", "acme:", true},
		{"acme:jo", "acme:jo", false},
		{"a%3Ab", "a%3Ab", false},
		{"%25%7B%7D%00%7F*", "%25%7B%7D%00%7F", true},
		{"all%2A", "all*", false},
		{"all%2A*", "all*", true},
		{"%2A%2Ab", "**b", false},
		{"%FF\x80ü*", "\xff\x80ü", true},
		{"with blanks", "with blanks", false},
		{"%invalid", "%invalid", false},
		{"acme:%invalid:*", "acme:%invalid:", true},
		{"%sha256-" + strings.Repeat("0a", 32), "%sha256-" + strings.Repeat("0a", 32), false},
	} {
		if p, err := ParsePattern(test.written); err != nil || p != (Pattern{test.text, test.prefix}) {
			t.Errorf("%q: got %+v, %v", test.written, p, err)
		}
	}
	for _, test := range []struct{ written, want string }{
		{"a*b", "a * before the end: write %2A for the byte"},
		{"**", "a * before the end"},
		{"*-suffix", "a * before the end"},
		{"a{b", `no key has the byte '{': write %7B`},
		{"a}", `no key has the byte '}': write %7D`},
		{"a\n", `no key has the byte '\n': write %0A`},
		{"100%", "a % without two of the digits 0 to 9 and A to F: write %25"},
		{"a%3*", "a % without two of the digits"},
		{"a%3a", "a % without two of the digits"},
		{"%2a", "a % without two of the digits"},
		{"x%invalid", "a % without two of the digits"},
		{"%sha256-" + strings.Repeat("0A", 32), "a % without two of the digits"},
		{"%sha256-" + strings.Repeat("0a", 32) + "*", "a % without two of the digits"},
		{"%41", "no key has the escape %41: write A"},
		{strings.Repeat("x", 1025), "a pattern of 1025 bytes, the most is 1024"},
	} {
		if _, err := ParsePattern(test.written); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: got %v, want %q", test.written, err, test.want)
		}
	}
}

// Every key can be written as a pattern of its own, and as the beginning of
// others. JSON holds the first.
func TestEveryKeyHasAPattern(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var key []byte
		part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[*%:{}a]{0,3}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		for i, part := range rapid.SliceOfN(part, 0, 3).Draw(t, "parts") {
			if i > 0 {
				key = append(key, ':')
			}
			key = spec.AppendEscaped(key, part)
		}
		for _, p := range []Pattern{{string(key), false}, {string(key), true}} {
			for _, written := range []string{p.String(), p.JSON()} {
				if got, err := ParsePattern(written); err != nil || got != p {
					t.Errorf("%q: got %+v, %v, want %+v", written, got, err, p)
				}
			}
			if !utf8.ValidString(p.JSON()) {
				t.Errorf("%q is not UTF-8", p.JSON())
			}
		}
	})
}

// longest is what a table is to find, looked for in the simplest way.
func longest(patterns []string, key string) (found int) {
	found = -1
	for i, p := range patterns {
		text, prefix := strings.CutSuffix(p, "*")
		if !prefix && text == key {
			return i
		}
		if prefix && strings.HasPrefix(key, text) && (found < 0 || len(p) > len(patterns[found])) {
			found = i
		}
	}
	return found
}

// newTable returns a table of patterns without escapes, with their places as values.
func newTable(written []string) *Table {
	t := new(Table)
	for i, s := range written {
		t.Add(unescaped(s), uint32(i))
	}
	return t
}

func unescaped(written string) Pattern {
	text, prefix := strings.CutSuffix(written, "*")
	return Pattern{text, prefix}
}

func place(value uint32, found bool) int {
	if !found {
		return -1
	}
	return int(value)
}

// checkTable compares a table with the model, for keys and all that is near the
// patterns.
func checkTable(t interface{ Fatalf(string, ...any) }, patterns, keys []string) {
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	table := newTable(patterns)
	for _, p := range patterns {
		text := strings.TrimSuffix(p, "*")
		keys = append(keys, text, text+"a", text+":", text+strings.Repeat("b", 9), text[:len(text)/2])
	}
	for _, key := range keys {
		if got, want := place(table.Find([]byte(key))), longest(patterns, key); got != want {
			t.Fatalf("%q: got pattern %d, want %d of %q", key, got, want, patterns)
		}
	}
	for i, p := range patterns {
		if got := place(table.Get(unescaped(p))); got != i {
			t.Fatalf("pattern %q is the %dth, not the %dth", p, i, got)
		}
		if got := table.Least(uint32(i)); got != p {
			t.Fatalf("pattern %q is called %q", p, got)
		}
		if table.Add(unescaped(p), 0) {
			t.Fatalf("pattern %q is there twice", p)
		}
	}
}

// A table finds what the model does, also where many prefixes are the beginnings
// of others.
func TestTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[ab:]{0,12}`),
			rapid.StringMatching(`(tenant-)?[0-9]{1,3}:?`),
			rapid.Custom(func(t *rapid.T) string {
				return strings.Repeat("ab", rapid.IntRange(0, 300).Draw(t, "long")) + rapid.StringMatching(`[ab]?`).Draw(t, "end")
			}),
		)
		pattern := rapid.Custom(func(t *rapid.T) string {
			return text.Draw(t, "text") + rapid.SampledFrom([]string{"", "*"}).Draw(t, "star")
		})
		checkTable(t, rapid.SliceOfN(pattern, 1, 200).Draw(t, "patterns"),
			rapid.SliceOfN(text, 0, 50).Draw(t, "keys"))
	})
}

// Of many lengths the longest prefix holds, however the patterns are nested.
func TestTableOfManyLengths(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 9, 200, 1000} {
		var nested, spread []string
		for i := range n {
			nested = append(nested, strings.Repeat("x", i)+"*")
			spread = append(spread, fmt.Sprintf("%d%s*", i, strings.Repeat("x", i)))
		}
		var keys []string
		for i := 0; i < n+3; i += 1 + n/70 {
			keys = append(keys, strings.Repeat("x", i), strings.Repeat("x", i)+"y", fmt.Sprintf("%d%s", i%max(n, 1), strings.Repeat("x", i/2)))
		}
		checkTable(t, slices.Clone(nested), slices.Clone(keys))
		checkTable(t, slices.Clone(spread), slices.Clone(keys))
		checkTable(t, slices.Concat(nested, spread), slices.Clone(keys))
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a*\nab\nabc*", "abcd")
	f.Add("*\ntenant-1\ntenant-*\ntenant-12:*", "tenant-12:x")
	f.Fuzz(func(t *testing.T, lines, key string) {
		var patterns []string
		for p := range strings.SplitSeq(lines, "\n") {
			if len(p) <= 1000 && !strings.Contains(strings.TrimSuffix(p, "*"), "*") {
				patterns = append(patterns, p)
			}
		}
		if len(patterns) == 0 || len(patterns) > 200 || strings.Contains(key, "*") {
			t.Skip()
		}
		checkTable(t, patterns, []string{key})
	})
}

// TestOrdinary wants a part to be ordinary only if nothing in it is escaped, wherever the
// byte stands, and the parts that most callers have to be ordinary.
func TestOrdinary(t *testing.T) {
	for size := 1; size <= 40; size++ {
		for at := range size {
			for c := range 256 {
				part := strings.Repeat("a", at) + string([]byte{byte(c)}) + strings.Repeat("Z", size-at-1)
				if ordinary(part) && Longer(part) != 0 {
					t.Fatalf("%q is ordinary", part)
				}
			}
		}
	}
	for _, part := range []string{"1001", "user-1001", "203.0.113.7", "9b2f7c1e-5d0a-4c3b-8f6e-2a1d0c9b8e7f", "ada@example.com", "Team_7-b"} {
		if !ordinary(part) {
			t.Errorf("%q is not ordinary", part)
		}
	}
}
