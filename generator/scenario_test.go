package generator_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/generator"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// The sections of a scenario that are no input: the generated files, under
// want/, and the text of the errors or, if there are none, of the warnings.
const (
	wantPrefix   = "want/"
	wantError    = "error"
	wantWarnings = "warnings"
)

// The section with a scenario's flags, one a line.
const flagsSection = "flags"

// scenarioConfig returns what to generate in dir.
func scenarioConfig(t *testing.T, archive *txtar.Archive, dir string) generator.Config {
	t.Helper()
	cfg := generator.Config{Dir: dir, Patterns: []string{"./..."}}
	for _, f := range archive.Files {
		if f.Name != flagsSection {
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
			case "-out":
				cfg.Out = value
			case "-pkg":
				cfg.Package = value
			case "packages":
				cfg.Patterns = strings.Fields(value)
			default:
				t.Fatal("unknown flag", line)
			}
		}
	}
	return cfg
}

// TestScenarios runs every testdata/*.txtar: the files of the archive are
// generated for, in a package of one scratch module. What comes out is
// compared with the archive, compiled, vetted, and the tests in it are run.
func TestScenarios(t *testing.T) {
	archives, err := filepath.Glob("../testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scenarios in testdata", err)
	}
	module := scratchModule(t)
	t.Run("case", func(t *testing.T) {
		for _, path := range archives {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(t, path, module, name)
			})
		}
	})
	if t.Failed() || testing.Short() {
		return
	}
	for _, args := range [][]string{{"vet", "./good/..."}, {"test", "./good/..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// scratchModule returns the directory of a new module that uses this one. Its
// packages below good are to compile.
func scratchModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := "module example.com/x\n" + requirements(string(mod), root)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.mod"), []byte(text))
	writeFile(t, filepath.Join(dir, "go.sum"), sum)
	return dir
}

// requirements returns the text of a go.mod with the requirements of this
// module's, which is in directory root, and of this module itself.
func requirements(mod, root string) string {
	var text strings.Builder
	for line := range strings.Lines(mod) {
		if !strings.HasPrefix(line, "module ") && !strings.HasPrefix(line, "tool ") {
			text.WriteString(line)
		}
	}
	text.WriteString("\nrequire github.com/rategen/rategen v0.0.0\n\nreplace github.com/rategen/rategen => " + root + "\n")
	return text.String()
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func scenario(t *testing.T, path, module, name string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fails := false
	for _, f := range archive.Files {
		fails = fails || f.Name == wantError
	}
	dir := filepath.Join(module, "good", name)
	if fails {
		dir = filepath.Join(module, "bad", name)
	}
	before := map[string]string{}
	var inputs, wants []txtar.File
	for _, f := range archive.Files {
		if f.Name == wantError || f.Name == wantWarnings || strings.HasPrefix(f.Name, wantPrefix) {
			wants = append(wants, f)
			continue
		}
		inputs = append(inputs, f)
		if f.Name == flagsSection {
			continue
		}
		before[f.Name] = string(f.Data)
		writeFile(t, filepath.Join(dir, f.Name), f.Data)
	}

	cfg := scenarioConfig(t, archive, dir)
	result, runErr := generator.Run(cfg)
	after := readTree(t, dir)
	var got []txtar.File
	if runErr != nil {
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("a run with errors changed files (-before +after):\n%s", diff)
		}
		got = []txtar.File{{Name: wantError, Data: []byte(runErr.Error() + "\n")}}
	} else {
		if len(result.Warnings) > 0 {
			got = []txtar.File{{Name: wantWarnings, Data: []byte(result.Warnings.Error() + "\n")}}
		}
		for _, file := range sortedKeys(after) {
			if after[file] != before[file] {
				got = append(got, txtar.File{Name: wantPrefix + file, Data: []byte(after[file])})
			}
		}
		for _, file := range sortedKeys(before) {
			if _, ok := after[file]; !ok {
				got = append(got, txtar.File{Name: wantPrefix + file, Data: []byte("removed\n")})
			}
		}
	}
	if *update {
		archive.Files = append(inputs, got...)
		writeFile(t, path, txtar.Format(archive))
		return
	}
	if diff := cmp.Diff(texts(wants), texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if runErr != nil {
		return
	}
	// A second run changes nothing, and -check agrees.
	for _, check := range []bool{false, true} {
		cfg.Check = check
		result, err := generator.Run(cfg)
		if err != nil {
			t.Errorf("second run: %v", err)
			continue
		}
		for _, f := range result.Files {
			if f.Status != generator.Unchanged {
				t.Errorf("second run, check %v: %s is %s", check, f.Path, f.Status)
			}
		}
	}
}

func texts(files []txtar.File) map[string]string {
	m := map[string]string{}
	for _, f := range files {
		// An archive ends each file with a line break.
		m[f.Name] = string(bytes.TrimRight(f.Data, "\n"))
	}
	return m
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("reading %s: %w", dir, err))
	}
	return files
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
