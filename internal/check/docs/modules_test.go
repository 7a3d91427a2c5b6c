package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Who works with a checkout reads which modules each module of the runtime needs.
func TestNeededModules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../runtime/*/go.mod")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	text := strings.ReplaceAll(content(t, "docs/tutorial.md"), "\n", " ")
	needs := regexp.MustCompile(`(?m)^\s*(?:replace )?github\.com/rategen/rategen/runtime/(\w+) => `)
	for _, file := range files {
		mod, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		for _, needed := range needs.FindAllStringSubmatch(string(mod), -1) {
			if !regexp.MustCompile("`" + name + "`[^.]*`" + needed[1] + "`").MatchString(text) {
				t.Errorf("docs/tutorial.md does not say that %s needs %s", name, needed[1])
			}
		}
	}
}
