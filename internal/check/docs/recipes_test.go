package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// recipes shows code of the examples.
const recipes = "docs/recipes.md"

// docs/recipes.md shows the code that the examples hold and test: every directive of a recipe is on the
// page.
func TestRecipes(t *testing.T) {
	files := map[string]string{}
	for _, file := range []string{"examples/client/client.go", "examples/client/model.go"} {
		files[file] = content(t, file)
	}
	found, err := filepath.Glob(filepath.Join(root, "examples/recipes/*/*.go"))
	limittest.OK(t, err)
	for _, file := range found {
		dir, base := filepath.Split(file)
		name := filepath.Base(dir)
		if base != name+".go" {
			continue
		}
		file = path.Join("examples/recipes", name, base)
		files[file] = content(t, file)
		_, noTest := os.Stat(filepath.Join(dir, name+"_test.go"))
		if _, err := os.Stat(filepath.Join(dir, "../testdata", name+".txt")); err != nil && noTest != nil {
			t.Errorf("%s has no test: %v", file, err)
		}
	}
	text, directives := content(t, recipes), 0
	for file, code := range files {
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "//ratelimit:") {
				directives++
				if !strings.Contains(text, line) {
					t.Errorf("%s lacks a line of %s: %s", recipes, file, line)
				}
			}
		}
	}
	if directives < 10 {
		t.Errorf("the recipes have %d directives", directives)
	}
}

// exampled are the pages that show code of examples, with the directories of these.
var exampled = map[string]string{
	recipes:              "examples",
	"docs/frameworks.md": "examples/frameworks",
	"docs/wiring.md":     "examples/frameworks",
	"docs/migrating.md":  "examples/migrating",
}

// What pages show of examples is in them as it stands. Blocks of go are compiled by themselves.
func TestExamplesAreShown(t *testing.T) {
	for path, dir := range exampled {
		sources, err := docs.ReadSources(filepath.Join(root, dir), ".go", ".sql", ".yaml")
		limittest.OK(t, err)
		for _, b := range page(t, path).Blocks {
			of := b.Language == "golang" || b.Language == "sql" || b.Language == "yaml" && b.Section != "Editors and linters"
			if of && len(sources.With(b.Text)) == 0 {
				t.Errorf("%s:%d: no example has this code", path, b.Line)
			}
		}
	}
}
