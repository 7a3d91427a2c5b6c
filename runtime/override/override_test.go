package override

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

func TestMain(m *testing.M) { limittest.Run(m) }

var full = runtime.Overrides{
	Enabled: new(true),
	Rules: map[string]rule.Override{
		"a":   {Enabled: new(false), Max: new(int64(0)), Window: new(7 * 24 * time.Hour), Mode: new(runtime.ModeShadow)},
		"b.c": {Max: new(int64(12)), Window: new(90 * time.Second), Mode: new(runtime.ModeEnforce)},
		"d":   {},
	},
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       runtime.Overrides
	}{
		{"a.json", `{}`, runtime.Overrides{}},
		{"a.yaml", `{}`, runtime.Overrides{}},
		{"a.json", "\n" + `{"enabled": true, "rules": {
			"a": {"enabled": false, "max": 0, "window": "7d", "mode": "shadow"},
			"b.c": {"max": 12, "window": "1m30s", "mode": "enforce"}, "d": {}}}` + "\n", full},
		{"limits.YML", `
enabled: true
rules:
  a:
    enabled: false
    max: 0
    window: 7d
    mode: shadow
  "b.c": {max: 12, window: 1m30s, mode: "enforce"}
  d: {}
`, full},
		{"..data", `{"enabled": false}`, runtime.Overrides{Enabled: new(false)}},
		{"limits", "---\nenabled: false", runtime.Overrides{Enabled: new(false)}},
		{"a.yaml", "rules: {1: {max: 5}, true: {max: 6}}", runtime.Overrides{Rules: map[string]rule.Override{
			"1": {Max: new(int64(5))}, "true": {Max: new(int64(6))}}}},
	} {
		got, err := said(parseFile(test.name, []byte(test.text)))
		if err != nil {
			t.Errorf("%s: %v\n%s", test.name, err, test.text)
		}
		if got.Rules != nil && len(got.Rules) == 0 {
			got.Rules = nil
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", test.name, diff, test.text)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, test := range []struct{ name, text, want string }{
		{"a.json", "", "empty: write {} for no overrides"},
		{"a.json", "null", "empty: write {} for no overrides"},
		{"a.yaml", "# cut off\nrules: # here\n", `line 2: rules is empty: write {"name of a rule": {"max": 10}}, or leave it out`},
		{"a.yaml", "rules: {r: {keys: }}", `keys is empty: write {"premium-*": {"max": 1000}}, or leave it out`},
		{"a.yaml", "# {}\n", "empty: write {} for no overrides"},
		{"a.json", "{\n\"rules\": {\n", "line 3: not JSON: unexpected end of JSON input"},
		{"a.json", "{\n\"rules\": {},,\n", "line 2: not JSON: invalid character ','"},
		{"a.json", "{} {}", "not JSON"},
		{"a.yaml", "rules:\n\t- x\n", "not YAML: "},
		{"a.yaml", "{}\n---\n{}\n", "more than one YAML document: a line --- begins the next"},
		{"a.json", "[]", "line 1: a list: write an object such as enabled: true and rules: {}"},
		{"a.yaml", "5", "line 1: a number: write an object"},
		{"a.json", `{"enable": false}`, `line 1: unknown field "enable": there are enabled, rules`},
		{"a.yaml", "rules:\n  r:\n    windw: 5s\n", `rule "r": line 3: unknown field "windw": there are burst, enabled, keys, max, mode, shares, until, window, and max_until, max_then and so on; block and allow are for keys, and weight is for shares`},
		{"a.json", "{\"rules\": {\"r\": {\n\"max\": 5,\n\"max\": 6}}}", `line 3: field "max" comes twice: leave one out`},
		{"a.yaml", "rules:\n  r: {}\n  s: {}\n  r: {max: 5}\n", `line 4: field "r" comes twice: leave one out`},
		{"a.json", `{"enabled": false, "enabled": true}`, `field "enabled" comes twice`},
		{"a.json", "{\"rules\":\n{\"r\": {\"max\": \"5\"}}}", `rule "r": line 2: max is text: write a whole number such as 10`},
		{"a.yaml", "rules: {r: {max: 1e6}}", `max is 1e6: write a whole number such as 10`},
		{"a.json", `{"rules": {"r": {"max": 1e6}}}`, `max is 1e6: write a whole number such as 10`},
		{"a.yaml", "rules: {r: {max: 010}}", `max is 010: write a whole number such as 10`},
		{"a.json", `{"rules": {"r": {"max": 99999999999999999999}}}`, `max is 99999999999999999999`},
		{"a.yaml", "rules: {r: {max:}}", `line 1: max is empty: write 10, or leave it out`},
		{"a.json", `{"rules": {"r": {"max": null}}}`, `max is empty: write 10, or leave it out`},
		{"a.yaml", "rules: {r: {shares: {a: {max: 5}}}}", `rule "r": share "a": line 1: unknown field "max": there are until, weight, and weight_until, weight_then`},
		{"a.yaml", "rules: {r: {weight: 5}}", `rule "r": line 1: unknown field "weight"`},
		{"a.yaml", "rules: {r: {keys: {a: {weight: 5}}}}", `rule "r": key "a": line 1: unknown field "weight"`},
		{"a.yaml", "rules: {r: {shares: {a: {weight: 1.5}}}}", `weight is 1.5: write a whole number such as 10`},
		{"a.yaml", "rules: {r: {shares: }}", `shares is empty: write {"premium-*": {"weight": 4}}, or leave it out`},
		{"a.yaml", "rules: {r: {until: \"2999-01-01T00:00:00Z\", shares: {a: {weight: 1, weight_until: \"2998-01-01T00:00:00Z\", weight_then: 2}}}}", `share "a": what holds then cannot end with the until of the rule: give the share ends of its own`},
		{"a.yaml", "rules: {r: {window: 10}}", `window is a number: write text with a unit such as "10s"`},
		{"a.yaml", "rules: {r: {window: soon}}", `window "soon" is not a duration: write one such as 500ms, 10s, 1h30m or 7d`},
		{"a.yaml", "rules: {r: {window: 1.5d}}", `window "1.5d" is not a duration`},
		{"a.yaml", "rules: {r: {mode: off}}", `unknown mode "off": write enforce, soft or shadow`},
		{"a.json", `{"rules": {"r": {"mode": 1}}}`, `mode is a number: write text such as enforce, soft or shadow`},
		{"a.yaml", "enabled: off", `enabled is text: write a boolean such as true or false`},
		{"a.json", `{"enabled": 0}`, `enabled is a number: write a boolean such as true or false`},
		{"a.json", `{"rules": []}`, `rules is a list: write an object`},
		{"a.yaml", "rules:\n  r:\n", `rule "r": line 2: r is empty: write {"max": 10, "window": "5s"}, or leave it out`},
		{"a.yaml", "rules: {r: &a {max: 5}, s: *a}", `*a stands for something elsewhere: write that here`},
		{"a.yaml", "rules: {r: !!binary aGk=}", `unknown tag`},
		{"a.yaml", "rules: {r: !mine {max: 5}}", `unknown tag !mine: leave it out`},
		{"a.yaml", "rules: {? [a] : {max: 5}}", `the name of a field is not text`},
		{"a.json", `{"rules": ` + deep + `}`, "more than 8 deep"},
		{"a.yaml", `rules: ` + strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000), "more than 8 deep"},
	} {
		got, err := said(parseFile(test.name, []byte(test.text)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q\n%.200s", test.name, err, test.want, test.text)
		}
		if got.Enabled != nil || got.Rules != nil {
			t.Errorf("%s: part of it is returned: %+v", test.name, got)
		}
	}
}

// Whatever is in a file, reading it neither panics nor takes long, and JSON that
// is understood means the same as YAML.
func FuzzParse(f *testing.F) {
	f.Add(`{"enabled": true, "rules": {"a": {"max": 5, "window": "5s", "mode": "shadow"}}}`)
	f.Add("rules:\n  a: {max: 5, window: 1d}\n")
	f.Add("a: &a [*a]")
	f.Add("? \n: !!map {<<: 1}")
	f.Fuzz(func(t *testing.T, text string) {
		fromJSON, err := said(parseFile("a.json", []byte(text)))
		fromYAML, errYAML := said(parseFile("a.yaml", []byte(text)))
		if err == nil && errYAML == nil {
			if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
				t.Errorf("JSON and YAML differ (-JSON +YAML):\n%s", diff)
			}
		}
		for _, err := range []error{err, errYAML} {
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
	})
}

// said returns what a file or hash says, whenever that ends.
func said(r reading, err error) (runtime.Overrides, error) { return r.overrides, inFull(err) }

// inFull returns an error that says all, names of keys too.
func inFull(err error) error {
	var e *private.Error
	if errors.As(err, &e) && e.Unwrap() != nil {
		return e.Unwrap()
	}
	return err
}

// look asks a source once.
func look(source runtime.OverrideSource) (runtime.Overrides, error) {
	o, err := source.Overrides(context.Background())
	return o, inFull(err)
}

// What the documentation shows is understood, and in both languages alike.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	var meant []runtime.Overrides
	const page = "../../docs/running.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"yaml", "json"} {
		blocks := strings.Split(string(text), "\n```"+language+"\n")
		for _, block := range blocks[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			if !strings.Contains(block, "rules") {
				continue
			}
			o, err := said(parseFile("a."+language, []byte(block)))
			if err != nil || len(o.Rules) != 2 {
				t.Errorf("%s: %v\n%s", page, err, block)
			}
			meant = append(meant, o)
		}
	}
	if len(meant) != 3 {
		t.Fatalf("%d examples, want 3", len(meant))
	}
	if diff := cmp.Diff(meant[0].Rules, meant[2].Rules); diff != "" { // the second is of single keys
		t.Errorf("the examples differ (-YAML +JSON):\n%s", diff)
	}
}
