package docs_test

import (
	"strings"
	"testing"

	"github.com/rategen/rategen/generator/analyzer"
)

// The configurations of golangci-lint name the plug-in and the linter as they are called, and
// the workflow has a step that fails where something is not generated.
func TestEditors(t *testing.T) {
	text, name := content(t, "docs/wiring.md"), analyzer.Analyzer.Name
	for _, want := range []string{
		"  enable:\n    - " + name + "\n",
		"    custom:\n      " + name + ":\n        type: module\n",
		"\n      - run: go tool rategen -check ./...\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/wiring.md does not say\n%s", want)
		}
	}
	for _, module := range []string{"", "/generator/golangci"} {
		path := strings.Fields(content(t, strings.TrimPrefix(module+"/go.mod", "/")))[1]
		if !strings.Contains(text, "\n  - module: "+path+"\n") || !strings.Contains(text, "\n    path: ../rategen"+module+"\n") {
			t.Errorf("docs/wiring.md does not have the module %s", path)
		}
	}
}
