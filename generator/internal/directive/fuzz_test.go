package directive

import (
	"go/token"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator/internal/diag"
)

func FuzzParseDirective(f *testing.F) {
	for _, seed := range []string{
		`key=#id window=10s max=5 prefix=rate_limit:emp: message="查询太快啦，喝杯茶再来"`,
		"key=f(#a, #b),`x` cost=len(#items)", "off", `import x "y"`, "key = 1", "a=\"", "==", " max=5", "off max=5",
		`refund="#err == nil" settle=#result.Usage deny=f(#w, #err) block=1h wait=1s`, "algorithm=concurrency refund=true block=1m mode=shadow",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") {
			t.Skip("a line comment is one line")
		}
		const pos = token.Pos(1000)
		line := Prefix + text
		end := pos + token.Pos(len(line))
		errors := 0
		report := func(at token.Pos, format string, args ...any) *diag.Diagnostic {
			errors++
			if at < pos || at > end {
				t.Errorf("%q: error at byte %d", line, at-pos)
			}
			return &diag.Diagnostic{}
		}
		d := parse(line, pos, report)
		if d == nil {
			if errors == 0 {
				t.Errorf("%q: neither a directive nor an error", line)
			}
			return
		}
		if errors == 0 && !d.Off && d.imports == nil && len(d.options) == 0 {
			t.Errorf("%q: no options and no error", line)
		}
		for _, o := range d.options {
			if got := line[o.pos-pos:]; !strings.HasPrefix(got, o.name+"=") {
				t.Errorf("%q: option %q at %q", line, o.name, got)
			}
			if v := o.value; v.Exact && !strings.HasPrefix(line[v.Pos-pos:], v.Text) {
				t.Errorf("%q: value %q not at its position", line, v.Text)
			}
		}
		if !d.Off && d.imports == nil {
			newSettings(d, onInterface, report)
		}
	})
}
