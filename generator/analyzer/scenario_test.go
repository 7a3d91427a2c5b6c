package analyzer_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

// The generator's scenarios, seen by the analyzer: it reports the same errors, but
// for those that are left to others, and the same warnings, generated files there
// or not.
func TestScenarios(t *testing.T) {
	archives, err := filepath.Glob("../../testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scenarios", err)
	}
	module := scratch.Module(t, "../..")
	expected := map[string]map[string]string{} // by scenario and section
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if name == "err_terms" {
			continue // rules of two packages, of which the analyzer sees one at a time
		}
		if sections := unpack(t, module, name, archive); sections != nil {
			expected[name] = sections
		}
	}
	found := vetAll(t, module)
	for _, parent := range []string{"good", "plain"} { // with the generated files and without
		total := 0
		for name, sections := range expected {
			name = parent + "/" + name
			compare(t, parent, name, sections, found[name])
			total += len(found[name])
		}
		if total < 100 {
			t.Errorf("%s: only %d diagnostics", parent, total)
		}
	}
}

// unpack writes a scenario's files and returns the sections with what the
// generator says, or nil if that is no matter for the analyzer.
func unpack(t *testing.T, module, name string, archive *txtar.Archive) map[string]string {
	isFlags := func(f txtar.File) bool { return f.Name == "flags" }
	if slices.ContainsFunc(archive.Files, isFlags) || bytes.Contains(txtar.Format(archive), []byte("rategen -out")) {
		return nil // what another package cannot name, say
	}
	if slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return foreignPolicy.Match(f.Data) }) {
		return nil // another package declares it
	}
	sections := map[string]string{}
	for _, f := range archive.Files {
		generated, ok := strings.CutPrefix(f.Name, "want/")
		if f.Name == "error" || f.Name == "warnings" {
			sections[f.Name] = string(f.Data)
		} else if !ok {
			for _, parent := range []string{"good", "plain"} {
				scratch.Write(t, filepath.Join(module, parent, name, f.Name), within(parent, string(f.Data)))
			}
		} else if string(f.Data) != "removed\n" {
			scratch.Write(t, filepath.Join(module, "good", name, generated), string(f.Data))
		}
	}
	return sections
}

// within returns text in which packages of scenarios with errors lie in another directory.
func within(parent, text string) string {
	return strings.ReplaceAll(text, "example.com/x/bad/", "example.com/x/"+parent+"/")
}

var foreignPolicy = regexp.MustCompile(`use=\w+\.`)

// vetAll returns what the analyzer says in a module, by the directory of a scenario. All are
// loaded at once: most of the work is to read what they import.
func vetAll(t *testing.T, module string) map[string]generator.Diagnostics {
	pkgs, err := packages.Load(&packages.Config{Dir: module, Mode: typecheck.Mode}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]generator.Diagnostics{}
	for _, p := range pkgs {
		isSyntax := func(e packages.Error) bool { return e.Kind == packages.ParseError }
		if p.Types == nil || slices.ContainsFunc(p.Errors, isSyntax) {
			continue
		}
		for _, d := range generator.Vet(generator.Package{Fset: p.Fset, Files: p.Syntax, Types: p.Types, Info: p.TypesInfo}) {
			parts := strings.SplitN(strings.TrimPrefix(d.Pos.Filename, module+"/"), "/", 3)
			name := parts[0] + "/" + parts[1]
			d.Pos.Filename = parts[2]
			// A warning may name another file, too.
			d.Message = strings.ReplaceAll(d.Message, module+"/"+name+"/", "")
			found[name] = append(found[name], d)
		}
	}
	return found
}

// leftToOthers matches errors that the compiler reports as well, and those about
// what is not loaded here: a package that only directives import.
var leftToOthers = regexp.MustCompile(`^\S+: (undefined: |expected '|key: undefined: parse\.Nothing)`)

// compare holds what the analyzer says of a scenario against what the
// generator says.
func compare(t *testing.T, parent, name string, sections map[string]string, found generator.Diagnostics) {
	wanted := within(parent, sections["error"])
	warnings := map[string]bool{}
	for _, d := range found {
		line := d.String() + "\n"
		if d.Severity == generator.Warning {
			warnings[line] = true
		} else if !strings.Contains(wanted, line) {
			t.Errorf("%s: not an error for the generator: %s", name, line)
		}
	}
	errors := map[string]bool{}
	for _, d := range found {
		errors[d.String()+"\n"] = true
	}
	for line := range strings.Lines(wanted) {
		if !errors[line] && !strings.Contains(line, "_test.go:") && !leftToOthers.MatchString(line) {
			t.Errorf("%s: no error: %s", name, line)
		}
	}
	for line := range strings.Lines(sections["warnings"]) {
		if !warnings[line] && !strings.Contains(line, "_test.go:") {
			t.Errorf("%s: no warning: %s", name, line)
		}
		delete(warnings, line)
	}
	for line := range warnings {
		if strings.HasSuffix(line, "[not_wired]\n") { // which a run of the generator does not see
			continue
		}
		t.Errorf("%s: not a warning for the generator: %s", name, line)
	}
}
