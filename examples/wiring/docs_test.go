package wiring

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rategen/rategen/internal/check/docs"
)

// docs/wiring.md shows code of this module, and code of every package but the generated ones.
func TestDocumentation(t *testing.T) {
	page, err := docs.Read("../../docs/wiring.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := docs.ReadSources(".", ".go", ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{".": true, "mocks/gomock": true, "mocks/mockery": true}
	for _, b := range page.Blocks {
		if b.Section == editors || !slices.Contains([]string{"golang", "yaml"}, b.Language) {
			continue
		}
		holders := sources.With(b.Text)
		for _, path := range holders {
			shown[filepath.Dir(path)] = true
		}
		if len(holders) == 0 {
			t.Errorf("docs/wiring.md:%d: no package has this code:\n%s", b.Line, b.Text)
		}
	}
	for path := range sources {
		if dir := filepath.Dir(path); !shown[dir] {
			t.Errorf("docs/wiring.md shows no code of %s", dir)
			shown[dir] = true
		}
	}
}
