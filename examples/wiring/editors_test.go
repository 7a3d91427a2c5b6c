package wiring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/generator/analyzer"
	"github.com/rategen/rategen/internal/check/docs"
)

const editorsPage = "../../docs/wiring.md"

// editors is the section of the page about editors.
const editors = "Editors and linters"

// yamlBlocks returns the blocks of YAML in the section about editors.
func yamlBlocks(t *testing.T) (texts []string) {
	t.Helper()
	page, err := docs.Read(editorsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page.Blocks {
		if b.Language == "yaml" && b.Section == editors {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) != 3 {
		t.Fatalf("%s has %d blocks of YAML", editorsPage, len(texts))
	}
	return texts
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
	found := yamlBlocks(t)
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
	found := yamlBlocks(t)
	if err := yaml.Load([]byte(found[len(found)-1]), &workflow, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	path, err := exec.Command("go", "tool", "-n", "rategen").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n",
		"a.go":   "package m\n\ntype A interface {\n\t//ratelimit:max=5\n\tDo() error\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rategen := func(args ...string) (string, error) {
		command := exec.Command(strings.TrimSpace(string(path)), args...)
		command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "RATEGEN_CACHE=off")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	checks := 0
	for _, step := range workflow.Jobs["limits"].Steps {
		args, ok := strings.CutPrefix(step.Run, "go tool rategen ")
		if !ok {
			continue
		}
		checks++
		if out, err := rategen(strings.Fields(args)...); err == nil || !strings.Contains(out, "missing") {
			t.Errorf("%s, before generating: %v\n%s", step.Run, err, out)
		}
		if out, err := rategen(); err != nil {
			t.Fatal(out)
		}
		if out, err := rategen(strings.Fields(args)...); err != nil {
			t.Errorf("%s, after generating: %v\n%s", step.Run, err, out)
		}
	}
	if checks != 1 {
		t.Errorf("the workflow has %d steps of rategen", checks)
	}
}
