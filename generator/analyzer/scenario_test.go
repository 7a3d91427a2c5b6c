package analyzer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

// The generator's scenarios, seen by the analyzer: it reports errors only where
// the generator does, and the same warnings, generated files there or not.
func TestScenarios(t *testing.T) {
	archives, err := filepath.Glob("../../testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scenarios", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, _ := strings.Cut(string(mod), "\n")
	requirements, _, _ = strings.Cut(requirements, "\ntool ")
	write(t, filepath.Join(module, "go.mod"), "module example.com/x\n"+requirements+
		"\nrequire github.com/rategen/rategen v0.0.0\n\nreplace github.com/rategen/rategen => "+root+"\n")
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(module, "go.sum"), string(sum))
	for _, path := range archives {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			vetScenario(t, module, name, archive)
		})
	}
}

func vetScenario(t *testing.T, module, name string, archive *txtar.Archive) {
	expected := map[string]string{} // by section
	for _, f := range archive.Files {
		switch {
		case f.Name == "flags":
			t.Skip("what another package cannot name is no matter for the analyzer")
		case f.Name == "error" || f.Name == "warnings":
			expected[f.Name] = string(f.Data)
		case strings.HasPrefix(f.Name, "want/"):
			if string(f.Data) != "removed\n" {
				write(t, filepath.Join(module, "good", name, strings.TrimPrefix(f.Name, "want/")), string(f.Data))
			}
		default:
			write(t, filepath.Join(module, "good", name, f.Name), string(f.Data))
			write(t, filepath.Join(module, "plain", name, f.Name), string(f.Data))
		}
	}
	for _, parent := range []string{"good", "plain"} { // with the generated files and without
		dir := filepath.Join(module, parent, name)
		pkgs, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedCompiledGoFiles,
			Dir:  dir,
		}, "./...")
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		for _, p := range pkgs {
			isSyntax := func(e packages.Error) bool { return e.Kind == packages.ParseError }
			if p.Types == nil || slices.ContainsFunc(p.Errors, isSyntax) {
				continue
			}
			for _, d := range generator.Vet(generator.Package{Fset: p.Fset, Files: p.Syntax, Types: p.Types, Info: p.TypesInfo}) {
				line := strings.TrimPrefix(d.String(), dir+"/")
				if d.Severity == generator.Warning {
					warnings = append(warnings, line)
				} else if !strings.Contains(expected["error"], line+"\n") {
					t.Errorf("%s: not an error for the generator: %s", parent, line)
				}
			}
		}
		slices.Sort(warnings)
		// A warning may name another file, there with its directory.
		got := strings.ReplaceAll(strings.Join(warnings, "\n"), dir+"/", "")
		for line := range strings.Lines(expected["warnings"]) {
			if !strings.Contains(line, "_test.go:") && !strings.Contains(got+"\n", line) {
				t.Errorf("%s: no warning: %sgot:\n%s", parent, line, got)
			}
		}
		if strings.Count(got, "\n") > strings.Count(expected["warnings"], "\n") {
			t.Errorf("%s: more warnings than the generator has:\n%s", parent, got)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
