package docs_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/internal/check/docs"
)

// compared are languages whose blocks a test elsewhere compares with code or output. It
// names the page. TestRecipes does so with recipes.
var compared = []string{"golang", "http", "sql"}

// A shown block is one that no program reads: what a program prints, say. It is named
// by a page and a text in it.
type shown struct {
	page, has string
	// file has every line of the block, if the file is not "".
	file string
	// reason says who checks the block, or why nobody can.
	reason string
}

const operating = "TestOperatingPages compares it with what the commands print"

const tutorial = "TestTutorial compares it with what the commands print"

var shownBlocks = []shown{
	{page: "ARCHITECTURE.md", has: "flowchart LR", reason: "TestDiagram of internal/check/imports compares it with the imports"},
	{page: "ARCHITECTURE.md", has: "stateDiagram-v2", reason: "drawn of the table in runtime/internal/decide/run.go"},
	{page: "bench/results/fleet.md", has: "xychart-beta", reason: "drawn of what was measured"},
	{page: "README.md", has: "enough greetings", reason: ".ci/quickstart compares it with what the program prints"},
	{page: "README.zh-CN.md", has: "429 Too Many Requests", reason: "TestTranslation compares it with README.md"},
	{page: "README.zh-CN.md", has: "enough greetings", reason: "TestTranslation compares it with README.md"},
	{page: "docs/failures.md", has: "in every window", reason: "a formula"},
	{page: "docs/grpc.md", has: "grpc-status-details-bin", reason: "the time in the details differs in every run"},
	{page: "docs/grpc.md", has: "rpc Buy", file: "testdata/proto.txtar"},
	{page: "docs/choosing.md", has: "AT-MOST", reason: "TestChoosing of cmd/ratectl compares it with what the commands print"},
	{page: "docs/choosing.md", has: "DELAYED", reason: "TestChoosing of cmd/ratectl compares it with what the commands print"},
	{page: "docs/operating.md", has: "WHEN", reason: operating},
	{page: "docs/operating.md", has: "STATE", reason: operating},
	{page: "docs/operating.md", has: "ENDLESS", reason: operating},
	{page: "docs/operating.md", has: "max is text", reason: "TestFailures of cmd/ratectl has this error, of another hash"},
	{page: "docs/ratectl.md", has: "+memory|usage", reason: "TestReader of cmd/ratectl has a user with these rights look at everything"},
	{page: "docs/ratectl.md", has: "+unwatch", reason: "TestRights of cmd/ratectl has a user with these rights do everything"},
	{page: "docs/running.md", has: "+zrangebyscore", reason: "TestScriptCommands of package script compares it with the scripts"},
	{page: "docs/tutorial.md", has: "POSITION", reason: tutorial},
	{page: "docs/tutorial.md", has: "429 Too Many Requests", reason: tutorial},
	{page: "docs/tutorial.md", has: "decisions_total", reason: tutorial},
	{page: "docs/tutorial.md", has: "hello ann", reason: tutorial},
	{page: "docs/tutorial.md", has: "0.01s", reason: tutorial},
	{page: "docs/testing.md", has: "this has happened", file: "runtime/ratetest/example_test.go"},
}

// Every block of code in the documentation is checked, or it is written down above why
// not: Go is compiled (TestGoCode), commands exist (TestCommands) and change Redis as
// they should (TestRedisCommands), YAML and JSON can be read, other languages are
// compared with code by a test that names the page.
func TestBlocks(t *testing.T) {
	met := make([]bool, len(shownBlocks))
	tests := tests(t)
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
			if err := readable(t, path, b, met, tests); err != nil {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
	for i, s := range shownBlocks {
		if !met[i] {
			t.Errorf("%s has no block with %q any more: remove it from shownBlocks", s.page, s.has)
		}
	}
}

// readable returns what is wrong with a block that is not Go.
func readable(t *testing.T, path string, b docs.Block, met []bool, tests string) error {
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
	for i, s := range shownBlocks {
		if s.page != path || !strings.Contains(b.Text, s.has) {
			continue
		}
		met[i] = true
		if s.file == "" {
			return nil
		}
		file := content(t, s.file)
		for line := range strings.Lines(b.Text) {
			if !strings.Contains(file, strings.TrimSpace(line)) {
				return fmt.Errorf("%s lacks the line %q", s.file, strings.TrimSpace(line))
			}
		}
		return nil
	}
	for _, language := range compared {
		if b.Language == language {
			if path != recipes && !strings.Contains(tests, path+`"`) {
				return fmt.Errorf("no test outside of internal/check/docs compares the %s of this page with code: write one that names %q", language, path)
			}
			return nil
		}
	}
	return fmt.Errorf("nobody checks this block of %q: have a test compare it, and add it to shownBlocks in internal/check/docs with the file or the reason", b.Language)
}

// tests returns the text of all tests in the repository but those of this package,
// those of nested modules included.
func tests(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if path, _ = filepath.Rel(root, path); !strings.HasPrefix(filepath.ToSlash(path), "internal/check/docs/") {
				text.WriteString(content(t, path))
			}
		}
	}
	return text.String()
}

// A block or a command that nobody checks is found, with a message that says what to do.
func TestUncheckedIsFound(t *testing.T) {
	tests := tests(t)
	for _, b := range []struct {
		path, language, text, want string
	}{
		{"docs/http.md", "json", "{", "no JSON"},
		{"docs/http.md", "yaml", "a: [", "yaml"},
		{"docs/http.md", "text", "anything", "add it to shownBlocks"},
		{"docs/http.md", "", "anything", "add it to shownBlocks"},
		{"docs/http.md", "http", "HTTP/1.1 200 OK", ""},
		{"docs/none.md", "golang", "x", `names "docs/none.md"`},
		{"docs/testing.md", "text", "this has happened", ""},
		{"docs/testing.md", "text", "this has happened\nand more than that", "lacks the line"},
	} {
		err := readable(t, b.path, docs.Block{Language: b.language, Text: b.text}, make([]bool, len(shownBlocks)), tests)
		if got := fmt.Sprint(err); b.want == "" && err != nil || !strings.Contains(got, b.want) {
			t.Errorf("%s %s %q: %v, want %q", b.path, b.language, b.text, err, b.want)
		}
	}
	for command, want := range map[string]string{
		"make all":          "add it to foreign",
		"make":              "add it to foreign",
		"go run ./none":     "no program in none",
		"go test ./none":    "no such package",
		"bash .ci/none":     "no such script",
		"go tool none -x":   "no program in cmd/none",
		"go tool rategen x": "",
		"redis-cli PING":    "",
		"rategen -check":    "",
		"rategen -chekc":    "no flag -chekc",
		"go get -tool github.com/rategen/rategen/cmd/none@v1.0.0":                                 "no package",
		"go get -tool github.com/rategen/rategen/cmd/rategen@latest":                              "",
		"go mod edit -replace github.com/rategen/rategen/none=/path/to/rategen":                   "no package",
		"go mod edit -replace github.com/rategen/rategen=/path/to/rategen":                        "",
		"go mod edit -replace github.com/rategen/rategen/runtime/rategrpc=/path/to/rategen/there": "no package",
	} {
		got := check(t, ".", strings.Fields(command))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
