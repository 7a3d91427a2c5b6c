package frameworks

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/doccheck"
)

// The page about frameworks shows code of this module, and code of every package.
func TestDocumentation(t *testing.T) {
	page, err := doccheck.Read("../../docs/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := sources(t)
	shown := map[string]bool{}
	for _, b := range page.Blocks {
		found := false
		for path, text := range sources {
			if strings.Contains(text, unindented(b.Text)) {
				shown[filepath.Dir(path)], found = true, true
			}
		}
		if !found {
			t.Errorf("docs/frameworks.md:%d: no package has this code:\n%s", b.Line, b.Text)
		}
	}
	for path := range sources {
		if dir := filepath.Dir(path); !shown[dir] && !slices.Contains(helpers, dir) {
			t.Errorf("docs/frameworks.md shows no code of %s", dir)
			shown[dir] = true
		}
	}
}

// helpers are directories without a framework.
var helpers = []string{".", "refused", "grpcapi/routev1", "grpcapi/routev1/routev1connect"}

// sources returns the files of the module, without indentation.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".go" && ext != ".sql" {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(path)] = unindented(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unindented returns text without the blanks that its lines begin with.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t ")
	}
	return strings.Join(lines, "\n")
}
