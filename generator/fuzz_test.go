package generator

import (
	"go/token"
	"strings"
	"testing"
)

func FuzzParseDirective(f *testing.F) {
	for _, seed := range []string{
		`key=#id window=10s max=5 prefix=rate_limit:emp: message="查询太快啦，喝杯茶再来"`,
		"key=f(#a, #b),`x` cost=len(#items)", "off", `import x "y"`, "key = 1", "a=\"", "==", " max=5", "off max=5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") {
			t.Skip("a line comment is one line")
		}
		const pos = token.Pos(1000)
		line := directivePrefix + text
		end := pos + token.Pos(len(line))
		errors := 0
		report := func(at token.Pos, format string, args ...any) *Diagnostic {
			errors++
			if at < pos || at > end {
				t.Errorf("%q: error at byte %d", line, at-pos)
			}
			return &Diagnostic{pos: at, end: at}
		}
		d := parseDirective(line, pos, report)
		if d == nil {
			if errors == 0 {
				t.Errorf("%q: neither a directive nor an error", line)
			}
			return
		}
		if errors == 0 && !d.off && d.imports == nil && len(d.options) == 0 {
			t.Errorf("%q: no options and no error", line)
		}
		for _, o := range d.options {
			if got := line[o.pos-pos:]; !strings.HasPrefix(got, o.name+"=") {
				t.Errorf("%q: option %q at %q", line, o.name, got)
			}
			if v := o.value; v.exact && !strings.HasPrefix(line[v.pos-pos:], v.text) {
				t.Errorf("%q: value %q not at its position", line, v.text)
			}
		}
		if !d.off && d.imports == nil {
			parseRule(d, onInterface, report)
		}
	})
}

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
