package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

type task struct {
	Command        string
	ProblemMatcher json.RawMessage
}

// tasks returns the tasks of VS Code that docs/wiring.md links.
func tasks(t *testing.T) []task {
	t.Helper()
	text, err := os.ReadFile("../../examples/frameworks/wiring/tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Tasks []task }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Tasks) != 2 {
		t.Fatalf("there are %d tasks", len(file.Tasks))
	}
	return file.Tasks
}

// The problem matcher reads errors and warnings as the command prints them.
func TestProblemMatcher(t *testing.T) {
	t.Parallel()
	var problems struct {
		Pattern struct {
			Regexp                                string
			File, Line, Column, Severity, Message int
		}
	}
	if err := json.Unmarshal(tasks(t)[0].ProblemMatcher, &problems); err != nil {
		t.Fatal(err)
	}
	pattern := problems.Pattern
	matcher, err := regexp.Compile(pattern.Regexp)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"//ratelimit:key=#ip widnow=10s":                          "a.go|4|22||unknown option",
		"//ratelimit:max=5":                                       "a.go|4|2|warning|all callers",
		"//ratelimit:key=#ip max=1000 storage=zset window=1":      `a.go|4|51||window: "1" is not a duration`,
		"//ratelimit:key=#ip max=5\n\tDo2(ip string) (n int)\n//": "a.go|4|2||Do2 has no error result",
	} {
		dir := writeModule(t, map[string]string{
			"go.mod": module["go.mod"],
			"a.go":   "package m\n\ntype A interface {\n\t" + source + "\n\tDo(ip string) error\n}\n",
		})
		_, _, errs := rategen(dir, "-check")
		line, _, _ := strings.Cut(errs, "\n")
		m := matcher.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the matcher does not read %q", line)
			continue
		}
		got := strings.Join([]string{m[pattern.File], m[pattern.Line], m[pattern.Column], m[pattern.Severity], m[pattern.Message]}, "|")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: the matcher reads %q, want %q", source, got, want)
		}
	}
}

// The task that explains a line gives the command what it needs.
func TestExplainTask(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, module)
	command, ok := strings.CutPrefix(tasks(t)[1].Command, "go tool rategen ")
	name, place, cut := strings.Cut(command, " ")
	if !ok || !cut {
		t.Fatalf("command %q", command)
	}
	place = strings.NewReplacer("${file}", filepath.Join(dir, "a.go"), "${lineNumber}", "5", "'", "").Replace(place)
	if code, out, errs := rategen(dir, name, place); code != done || !strings.HasPrefix(out, "a.go:4: m.A.Do\n") {
		t.Errorf("%s %s: exit %d\n%s%s", name, place, code, out, errs)
	}
}
