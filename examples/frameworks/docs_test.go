package frameworks

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/check/docs"
)

// Both pages show code of this module. What one of them shows or links is every package but
// those that have no framework.
func TestDocumentation(t *testing.T) {
	sources, err := docs.ReadSources(".", ".go", ".sql", ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{".": true, "refused": true, "wiring/mocks/gomock": true}
	for path, of := range map[string]func(docs.Block) bool{
		"../../docs/frameworks.md": func(b docs.Block) bool { return b.Language == "golang" || b.Language == "sql" },
		"../../docs/wiring.md": func(b docs.Block) bool {
			return b.Section != "Editors and linters" && slices.Contains([]string{"golang", "yaml"}, b.Language)
		},
	} {
		page, err := docs.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Links {
			if file, ok := strings.CutPrefix(l.Target, "../examples/frameworks/"); ok {
				shown[filepath.Dir(file)] = true
			}
		}
		for _, b := range page.Blocks {
			if !of(b) {
				continue
			}
			holders := sources.With(b.Text)
			for _, file := range holders {
				shown[filepath.Dir(file)] = true
			}
			if len(holders) == 0 {
				t.Errorf("%s:%d: no package has this code:\n%s", path, b.Line, b.Text)
			}
		}
	}
	for file := range sources {
		if dir := filepath.Dir(file); !shown[dir] {
			t.Errorf("no page shows or links code of %s", dir)
			shown[dir] = true
		}
	}
}
