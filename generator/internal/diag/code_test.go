package diag

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The manual explains every code, in order and once, and no other. A scenario, or a test
// of the command, has a warning with each.
func TestCodes(t *testing.T) {
	manual, err := os.ReadFile("../../../cmd/rategen/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "\n# Warnings\n")
	section, _, _ = strings.Cut(section, "\n# ")
	var documented []Code
	for _, item := range regexp.MustCompile(`(?m)^  - (\S*): `).FindAllStringSubmatch(section, -1) {
		documented = append(documented, Code(item[1]))
	}
	if diff := cmp.Diff(codes, documented); diff != "" {
		t.Errorf("codes (-warnings +cmd/rategen/doc.go):\n%s", diff)
	}
	if items := strings.Count(section, "\n  - "); items != len(documented) {
		t.Errorf("%d of %d warnings of the manual have a code", len(documented), items)
	}
	scenarios, _ := filepath.Glob("../../../testdata/*.txtar")
	commands, _ := filepath.Glob("../../../cmd/rategen/testdata/*.txtar")
	vetted, _ := filepath.Glob("../../analyzer/testdata/src/*/*.go")
	shown := map[Code]bool{}
	for _, path := range slices.Concat(scenarios, commands, vetted) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:warning: |write |want ).* \\?\[(\w+)\\?\]`).FindAllStringSubmatch(string(text), -1) {
			shown[Code(m[1])] = true
		}
	}
	for _, c := range codes {
		if !shown[c] {
			t.Errorf("no scenario in testdata and no test of cmd/rategen or the analyzer has a warning [%s]", c)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(codes))); len(unique) != len(codes) {
		t.Errorf("a code names two kinds of warnings: %v", codes)
	}
}
