package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// comparison is the page with the versions that were measured.
const comparison = "bench/results/compare.md"

// Figures in sentences and in tables of a selection are those of a cell of what bench
// has measured, which testdata/figures.txt names.
func TestCopiedFigures(t *testing.T) {
	for line := range strings.Lines(content(t, "internal/check/docs/testdata/figures.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		names := strings.Split(line, "; ")
		page, from := names[0], "bench/results/"+names[1]
		for _, column := range names[4:] {
			for _, figure := range cells(t, from, names[2], names[3], column) {
				if !strings.Contains(content(t, page), figure) {
					t.Errorf("%s does not have %s of %s: %s, %s", page, figure, from, names[3], column)
				}
			}
		}
	}
}

// cells returns what a row of the first table of a section has in the columns of a name,
// without what stands in brackets.
func cells(t *testing.T, path, section, row, column string) (found []string) {
	t.Helper()
	_, text, _ := strings.Cut(content(t, path), section)
	lines := strings.Split(table(t, section+text, "|"), "\n")
	names := strings.Split(lines[0], " | ")
	for _, line := range lines {
		if !strings.HasPrefix(line, "| "+row+" |") {
			continue
		}
		for i, cell := range strings.Split(line, " | ") {
			if strings.Trim(names[i], "| ") == column {
				cell, _, _ = strings.Cut(strings.Trim(cell, "| "), " (")
				found = append(found, strings.TrimSuffix(cell, " ns"))
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no cell %q, %q", path, row, column)
	}
	return found
}

// table returns the table that begins with some text.
func table(t *testing.T, page, start string) string {
	t.Helper()
	i := strings.Index(page, start)
	if i < 0 {
		t.Fatalf("there is no table that begins %q", start)
	}
	text, _, _ := strings.Cut(page[i:], "\n\n")
	if strings.Count(text, "\n") < 5 {
		t.Fatalf("the table that begins %q is short: %q", start, text)
	}
	return text + "\n"
}

// The versions that docs/comparison.md and docs/migrating.md name are those that the
// modules with these limiters require.
func TestComparedVersions(t *testing.T) {
	modules := map[string]string{
		"redis_rate":    "github.com/go-redis/redis_rate/v10",
		"throttled":     "github.com/throttled/throttled/v2",
		"ulule/limiter": "github.com/ulule/limiter/v3",
		"httprate":      "github.com/go-chi/httprate",
		"x/time/rate":   "golang.org/x/time",
		"tollbooth":     "github.com/didip/tollbooth/v7",
	}
	rows := strings.Split(table(t, content(t, "docs/comparison.md"), "| | rategen | redis_rate"), "\n")
	names, versions := strings.Split(rows[0], " | "), strings.Split(rows[2], " | ")
	if !strings.HasPrefix(rows[2], "| version ") {
		t.Fatalf("not a row of versions: %s", rows[2])
	}
	sections := map[string]string{}
	for _, section := range strings.Split(content(t, "docs/migrating.md"), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n\n")
		sections[name] = text
	}
	measured := regexp.MustCompile(`(?m)^- Versions: .*$`).FindString(content(t, comparison))
	for name, path := range modules {
		required := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(path) + ` (\S+)$`)
		for _, mod := range []string{"bench/go.mod", "examples/migrating/go.mod"} {
			m := required.FindStringSubmatch(content(t, mod))
			if m == nil {
				if mod != "bench/go.mod" {
					t.Errorf("%s does not require %s", mod, path)
				}
				continue // bench has not all of them
			}
			if mod == "bench/go.mod" && name != "httprate" && !strings.Contains(measured, strings.TrimPrefix(path, "github.com/")+" "+m[1]) {
				t.Errorf("%s was measured with another %s than %s: run go run ./compare -cores 2 -write .. in bench", comparison, path, m[1])
			}
			if !strings.HasPrefix(sections[name], m[1]+" ") && !strings.HasPrefix(sections[name], m[1]+",") {
				t.Errorf("docs/migrating.md: the section on %s does not begin with %s, which %s requires", name, m[1], mod)
			}
			if i := slices.Index(names, name); i >= 0 && versions[i] != m[1] {
				t.Errorf("docs/comparison.md has %s %s, and %s requires %s", name, versions[i], mod, m[1])
			}
		}
	}
}
