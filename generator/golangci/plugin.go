// Package golangci is a module plug-in of golangci-lint: the linter ratelimit, which
// reports what rategen would report about //ratelimit: directives, with its fixes.
// docs/wiring.md shows how to build a golangci-lint that has it.
package golangci

import (
	"fmt"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/rategen/rategen/generator/analyzer"
)

func init() { register.Plugin(analyzer.Analyzer.Name, newLinter) }

type linter struct{}

// newLinter returns the linter. It has no settings.
func newLinter(settings any) (register.LinterPlugin, error) {
	if s, ok := settings.(map[string]any); settings != nil && (!ok || len(s) > 0) {
		return nil, fmt.Errorf("the linter %s has no settings: remove %v", analyzer.Analyzer.Name, settings)
	}
	return linter{}, nil
}

func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{analyzer.Analyzer}, nil
}

func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
