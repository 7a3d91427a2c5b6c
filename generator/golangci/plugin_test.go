package golangci

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
)

// golangci-lint finds the linter by its name, and gets an analyzer with types.
func TestPlugin(t *testing.T) {
	plugin, err := register.GetPlugin("ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	for _, settings := range []any{nil, map[string]any{}} {
		linter, err := plugin(settings)
		if err != nil {
			t.Fatal(err)
		}
		analyzers, err := linter.BuildAnalyzers()
		if err != nil || len(analyzers) != 1 || analyzers[0].Name != "ratelimit" {
			t.Errorf("analyzers %v, error %v", analyzers, err)
		}
		if linter.GetLoadMode() != register.LoadModeTypesInfo {
			t.Errorf("load mode %q", linter.GetLoadMode())
		}
	}
	for _, settings := range []any{map[string]any{"strict": true}, "strict"} {
		if _, err := plugin(settings); err == nil {
			t.Errorf("settings %v are taken", settings)
		}
	}
}
