package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the figures in docs/comparison.md")

// The figures of docs/comparison.md are those that bench has written into
// docs/benchmarks.md: none is written by hand.
func TestComparedFigures(t *testing.T) {
	const from, to = "docs/benchmarks.md", "docs/comparison.md"
	measured := content(t, from)
	summary := table(t, measured, "| decisions per second")
	sizes := table(t, measured, "| limiter | 100 events")
	facts := regexp.MustCompile(`(?m)^- (Machine|Versions): .*$`).FindAllString(measured, -1)
	if len(facts) != 2 {
		t.Fatalf("%s names %q", from, facts)
	}
	want := "\n" + summary + "\nBytes of a key in Redis:\n\n" + sizes + "\n" + strings.Join(facts, "\n") + "\n\n"

	const start, end = "<!-- figures -->\n", "<!-- /figures -->"
	page := content(t, to)
	before, rest, started := strings.Cut(page, start)
	got, after, ended := strings.Cut(rest, end)
	if !started || !ended {
		t.Fatalf("%s has no place for figures", to)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, to), []byte(before+start+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: run go test ./internal/check/docs -run TestComparedFigures -update (-want +got):\n%s", to, diff)
	}
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
	measured := regexp.MustCompile(`(?m)^- Versions: .*$`).FindString(content(t, "docs/benchmarks.md"))
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
				t.Errorf("docs/benchmarks.md was measured with another %s than %s: run go run ./compare -cores 2 -write .. in bench", path, m[1])
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
