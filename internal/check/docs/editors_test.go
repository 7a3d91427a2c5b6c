package docs_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/generator/analyzer"
)

// The configurations of golangci-lint name the plug-in and the linter as they are called, and
// the workflow has a step that fails where something is not generated.
func TestEditors(t *testing.T) {
	var found []string
	for _, b := range page(t, "docs/wiring.md").Blocks {
		if b.Language == "yaml" && b.Section == "Editors and linters" {
			found = append(found, b.Text)
		}
	}
	if len(found) != 3 || !strings.Contains(found[2], "\n      - run: go tool rategen -check ./...\n") {
		t.Fatalf("%d blocks of YAML, or no step that checks", len(found))
	}
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
	for i, into := range []any{&custom, &config} {
		if err := yaml.Load([]byte(found[i]), into, yaml.WithKnownFields()); err != nil {
			t.Fatal(err)
		}
	}
	name := analyzer.Analyzer.Name
	if !slices.Contains(config.Linters.Enable, name) || config.Linters.Settings.Custom[name].Type != "module" {
		t.Errorf("the linter is called %s, and the configuration is %+v", name, config)
	}
	for _, p := range custom.Plugins {
		mod := content(t, strings.TrimPrefix(strings.TrimPrefix(p.Path, "../rategen"), "/")+"/go.mod")
		if !strings.HasPrefix(mod, "module "+p.Module+"\n") {
			t.Errorf("%s is not the module %s", p.Path, p.Module)
		}
	}
}
