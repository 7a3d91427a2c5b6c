package migrating

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rategen/rategen/internal/check/docs"
)

// docs/migrating.md shows code of this module, and code of every package.
func TestDocumentation(t *testing.T) {
	page, err := docs.Read("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := docs.ReadSources(".", ".go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{".": true}
	for _, b := range page.Blocks {
		if !slices.Contains([]string{"golang"}, b.Language) {
			continue
		}
		holders := sources.With(b.Text)
		for _, path := range holders {
			shown[filepath.Dir(path)] = true
		}
		if len(holders) == 0 {
			t.Errorf("docs/migrating.md:%d: no package has this code:\n%s", b.Line, b.Text)
		}
	}
	for path := range sources {
		if dir := filepath.Dir(path); !shown[dir] {
			t.Errorf("docs/migrating.md shows no code of %s", dir)
			shown[dir] = true
		}
	}
}
