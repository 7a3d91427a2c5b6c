package generator_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"golang.org/x/tools/txtar"
)

// The sections of a scenario that are no input: the generated files, under
// want/, and the text of the errors or, if there are none, of the warnings.
const (
	wantPrefix   = "want/"
	wantError    = "error"
	wantWarnings = "warnings"
)

// The section with a scenario's flags, one a line.
const flagsSection = "flags"

// A scenario is one testdata/*.txtar: files of a package, and what comes out.
type scenario struct {
	name, path    string
	parent        string // the directory of the module that it lies in: good or bad
	config        generator.Config
	apart         bool // it cannot be generated for together with others
	inputs, wants []txtar.File
	before        map[string]string // the files of its directory
}

// unpack writes the files of an archive below the directory of a module.
func unpack(t *testing.T, path, module string) *scenario {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path, parent: "good", before: map[string]string{}}
	s.config.Patterns = []string{"./..."}
	for _, f := range archive.Files {
		if f.Name == wantError {
			s.parent = "bad"
			s.wants = append(s.wants, f)
			continue
		}
		if f.Name == wantWarnings || strings.HasPrefix(f.Name, wantPrefix) {
			s.wants = append(s.wants, f)
			continue
		}
		if f.Name == flagsSection {
			s.apart = true
			s.setFlags(t, string(f.Data))
		} else {
			s.before[f.Name] = string(f.Data)
			// With cgo the go command type-checks all packages of a run.
			s.apart = s.apart || !effort.Full() && strings.Contains(string(f.Data), "import \"C\"")
		}
		s.inputs = append(s.inputs, f)
	}
	s.config.Dir = filepath.Join(module, s.parent, s.name)
	s.write(t)
	return s
}

// write writes the files of a scenario, and removes what is generated.
func (s *scenario) write(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(s.config.Dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range s.before {
		scratch.Write(t, filepath.Join(s.config.Dir, name), content)
	}
}

// tested returns the directories of a scenario that have tests, as the go command names them.
func (s *scenario) tested() (dirs []string) {
	for name := range s.before {
		dir := "./" + filepath.ToSlash(filepath.Join(s.parent, s.name, filepath.Dir(name)))
		if strings.HasSuffix(name, "_test.go") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// setFlags sets what a scenario's flags say.
func (s *scenario) setFlags(t *testing.T, flags string) {
	t.Helper()
	for line := range strings.Lines(flags) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "-out":
			s.config.Out = value
		case "-pkg":
			s.config.Package = value
		case "packages":
			s.config.Patterns = strings.Fields(value)
		default:
			t.Fatal("unknown flag", line)
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
