package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/generator/analyzer"
	"github.com/rategen/rategen/internal/doccheck"
)

const editorsPage = "../../docs/editors.md"

// blocks returns the blocks of a language on the page about editors.
func blocks(t *testing.T, language string) (texts []string) {
	t.Helper()
	page, err := doccheck.Read(editorsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page.Blocks {
		if b.Language == language {
			texts = append(texts, b.Text)
		}
	}
	return texts
}

// The problem matcher of the page reads errors and warnings as the command prints them.
func TestProblemMatcher(t *testing.T) {
	var tasks struct {
		Tasks []struct {
			Command        string
			ProblemMatcher struct {
				Pattern struct {
					Regexp                                string
					File, Line, Column, Severity, Message int
				}
			}
		}
	}
	found := blocks(t, "json")
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of JSON", editorsPage, len(found))
	}
	if err := json.Unmarshal([]byte(found[0]), &tasks); err != nil {
		t.Fatal(err)
	}
	pattern := tasks.Tasks[0].ProblemMatcher.Pattern
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

// The configurations of golangci-lint name the plug-in and the linter as they are called.
func TestLinterConfiguration(t *testing.T) {
	var custom struct {
		Version, Name string
		Plugins       []struct{ Module, Import, Path string }
	}
	var config struct {
		Version string
		Linters struct {
			Enable   []string
			Settings struct {
				Custom map[string]struct{ Type, Description string }
			}
		}
	}
	found := blocks(t, "yaml")
	for i, into := range []any{&custom, &config} {
		if err := yaml.Load([]byte(found[i]), into, yaml.WithKnownFields()); err != nil {
			t.Fatalf("%s: %v", editorsPage, err)
		}
	}
	name := analyzer.Analyzer.Name
	if !slices.Contains(config.Linters.Enable, name) || config.Linters.Settings.Custom[name].Type != "module" {
		t.Errorf("the linter is called %s, and the configuration is %+v", name, config)
	}
	for _, p := range custom.Plugins {
		dir := "../../" + strings.TrimPrefix(strings.TrimPrefix(p.Path, "../rategen"), "/")
		content, err := os.ReadFile(dir + "/go.mod")
		if err != nil || !strings.HasPrefix(string(content), fmt.Sprintf("module %s\n", p.Module)) {
			t.Errorf("%s is not the module %s: %v", p.Path, p.Module, err)
		}
	}
}

// The workflow of the page is YAML, and its commands are flags of this command.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		Name string
		On   []string
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct {
				Uses, Run string
				With      map[string]string
			}
		}
	}
	found := blocks(t, "yaml")
	if err := yaml.Load([]byte(found[len(found)-1]), &workflow, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	checks := 0
	for _, step := range workflow.Jobs["limits"].Steps {
		args, ok := strings.CutPrefix(step.Run, "go tool rategen ")
		if !ok {
			continue
		}
		checks++
		dir := writeModule(t, module)
		if code, _, errs := rategen(dir, strings.Fields(args)...); code != inputError || !strings.Contains(errs, "missing") {
			t.Errorf("%s: exit %d: %s", step.Run, code, errs)
		}
		if code, _, errs := rategen(dir); code != done {
			t.Fatal(errs)
		}
		if code, _, errs := rategen(dir, strings.Fields(args)...); code != done {
			t.Errorf("%s, after generating: exit %d: %s", step.Run, code, errs)
		}
	}
	if checks != 1 {
		t.Errorf("the workflow has %d steps of rategen", checks)
	}
}
