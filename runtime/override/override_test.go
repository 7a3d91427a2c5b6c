package override

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
)

func TestMain(m *testing.M) { limittest.Run(m) }

// Whatever is in a file, reading it neither panics nor takes long, and JSON that
// is understood means the same as YAML.
func FuzzParse(f *testing.F) {
	f.Add(`{"enabled": true, "rules": {"a": {"max": 5, "window": "5s", "mode": "shadow"}}}`)
	f.Add("rules:\n  a: {max: 5, window: 1d}\n")
	f.Add("a: &a [*a]")
	f.Add("? \n: !!map {<<: 1}")
	f.Add(`{"rules": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)
	f.Add(`rules: ` + strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000))
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
	limittest.OK(t, err)
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
