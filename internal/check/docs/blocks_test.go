package docs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// compared are languages whose blocks a test elsewhere compares with code or output. It
// names the page. TestExamplesAreShown does so with those of examples.
var compared = []string{"golang", "http", "sql"}

// shown returns the lines of testdata/shown.txt, which name blocks: the page, a text of the block, and why
// it may stand there.
func shown(t *testing.T) [][]string {
	return regexp.MustCompile(`(?m)^(\S+) \| (.*?) \| (file )?(.*)$`).FindAllStringSubmatch(content(t, "internal/check/docs/testdata/shown.txt"), -1)
}

// Every block of code in the documentation is checked, or it is written down above why
// not: Go is compiled (TestGoCode), commands exist (TestCommands) and change Redis as
// they should (TestRedisCommands), YAML and JSON can be read, other languages are
// compared with code by a test that names the page.
func TestBlocks(t *testing.T) {
	shown, tests := shown(t), tests(t)
	met := make([]bool, len(shown))
	for path, p := range pages(t) {
		for i, line := range strings.Split(content(t, path), "\n") {
			if trimmed := strings.TrimLeft(line, " \t"); trimmed != line && strings.HasPrefix(trimmed, "```") {
				t.Errorf("%s:%d: an indented block is not checked: begin it at the start of the line", path, i+1)
			}
		}
		for _, b := range p.Blocks {
			place := fmt.Sprintf("%s:%d", path, b.Line)
			if !b.Closed {
				t.Errorf("%s: the block has no end", place)
			}
			if err := readable(t, path, b, shown, met, tests); err != nil {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
	for i, s := range shown {
		if !met[i] {
			t.Errorf("%s has no block with %q any more: remove it from testdata/shown.txt", s[1], s[2])
		}
	}
}

// readable returns what is wrong with a block that is not Go.
func readable(t *testing.T, path string, b docs.Block, shown [][]string, met []bool, tests string) error {
	switch b.Language {
	case "go", "sh", "bash":
		return nil
	case "json":
		if !json.Valid([]byte(b.Text)) {
			return fmt.Errorf("this is no JSON")
		}
		return nil
	case "yaml":
		var v any
		return yaml.Unmarshal([]byte(b.Text), &v)
	}
	for i, s := range shown {
		if s[1] != path || !strings.Contains(b.Text, s[2]) {
			continue
		}
		met[i] = true
		if s[3] == "" {
			return nil
		}
		file := content(t, s[4])
		for line := range strings.Lines(b.Text) {
			if !strings.Contains(file, strings.TrimSpace(line)) {
				return fmt.Errorf("%s lacks the line %q", s[4], strings.TrimSpace(line))
			}
		}
		return nil
	}
	for _, language := range compared {
		if b.Language == language {
			if exampled[path] == "" && !strings.Contains(tests, path+`"`) {
				return fmt.Errorf("no test outside of internal/check/docs compares the %s of this page with code: write one that names %q", language, path)
			}
			return nil
		}
	}
	return fmt.Errorf("nobody checks this block of %q: have a test compare it, and add it to testdata/shown.txt in internal/check/docs with the file or the reason", b.Language)
}

// tests returns the text of all tests in the repository but those of this package,
// those of nested modules included.
func tests(t *testing.T) string {
	t.Helper()
	sources, err := docs.ReadSources(root, ".go")
	limittest.OK(t, err)
	var text strings.Builder
	for path, source := range sources {
		if strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/check/docs/") {
			text.WriteString(source)
		}
	}
	return text.String()
}
