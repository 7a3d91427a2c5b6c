package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages of bench/results that figures are copied from.
const (
	comparison = "bench/results/compare.md"
	callers    = "bench/results/callers.md"
	capacity   = "bench/results/capacity.md"
	faults     = "bench/results/faults.md"
)

// Figures in sentences and in tables of a selection are those of a cell of what bench
// has measured.
func TestCopiedFigures(t *testing.T) {
	rate, p50 := "**decisions per second**\n\n", "**p50**\n\n"
	readme := []string{"README.md", "README.zh-CN.md"}
	page, regions := []string{"docs/comparison.md"}, []string{"docs/regions.md"}
	for _, c := range []struct {
		pages              []string
		from, section, row string
		columns            []string
	}{
		{readme, callers, rate, "rategen sliding-log zset", []string{"64"}},
		{readme, comparison, "| decisions", "rategen sliding-log zset", []string{"256 callers, 1,000 keys, all refused"}},
		{page, comparison, "### Counts in memory", "rategen fixed-window", []string{"1 caller, 1,000 keys admitted"}},
		{page, comparison, "### Counts in memory", "rategen sliding-counter", []string{"1 caller, 1,000 keys admitted"}},
		{page, comparison, "### Counts in memory", "sethvargo/go-limiter", []string{"1 caller, 1,000 keys admitted"}},
		{page, comparison, "### Counts in memory", "x/time/rate in a sync.Map", []string{"1 caller, 1,000 keys admitted"}},
		{page, callers, rate, "rategen sliding-log zset", []string{"1", "8", "64"}},
		{page, callers, rate, "redis_rate", []string{"1", "8", "64"}},
		{page, callers, rate, "sethvargo/go-redisstore", []string{"1"}},
		{page, callers, rate, "rategen token-bucket", []string{"8", "64"}},
		{page, callers, rate, "fixed window over rueidis", []string{"8", "64"}},
		{page, callers, rate, "redis_rate over AutoPipeline", []string{"8", "64"}},
		{page, callers, p50, "rategen sliding-log zset", []string{"8", "64"}},
		{page, callers, p50, "redis_rate", []string{"8", "64"}},
		{page, callers, p50, "rategen token-bucket", []string{"8", "64"}},
		{page, callers, p50, "fixed window over rueidis", []string{"8", "64"}},
		{page, callers, p50, "redis_rate over AutoPipeline", []string{"8", "64"}},
		{regions, capacity, "| | µs alone", "`sliding-log` `storage=zset`", []string{"a second"}},
		{regions, capacity, "| | µs alone", "`token-bucket`", []string{"a second"}},
		{regions, faults, "| delay", "20 ms", []string{"p50"}},
		{regions, faults, "| delay", "40 ms", []string{"p50"}},
	} {
		for _, column := range c.columns {
			for _, figure := range cells(t, c.from, c.section, c.row, column) {
				for _, page := range c.pages {
					if !strings.Contains(content(t, page), figure) {
						t.Errorf("%s does not have %s of %s: %s, %s", page, figure, c.from, c.row, column)
					}
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
