package frameworks

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/check/docs"
)

// The section about frameworks shows code of this module, and shows or links every package.
func TestDocumentation(t *testing.T) {
	page, err := docs.Read("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := docs.ReadSources(".", ".go", ".sql")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, l := range page.Links {
		if path, ok := strings.CutPrefix(l.Target, "../examples/frameworks/"); ok {
			shown[filepath.Dir(path)] = true
		}
	}
	for _, b := range page.Blocks {
		if b.Section != "Frameworks" {
			continue
		}
		holders := sources.With(b.Text)
		for _, path := range holders {
			shown[filepath.Dir(path)] = true
		}
		if len(holders) == 0 {
			t.Errorf("docs/http.md:%d: no package has this code:\n%s", b.Line, b.Text)
		}
	}
	for path := range sources {
		if dir := filepath.Dir(path); !shown[dir] && !slices.Contains(helpers, dir) {
			t.Errorf("docs/http.md neither shows nor links code of %s", dir)
			shown[dir] = true
		}
	}
}

// helpers are directories without a framework.
var helpers = []string{".", "refused", "grpcapi/routev1", "grpcapi/routev1/routev1connect"}
