package analyzer_test

import (
	"testing"

	"github.com/rategen/rategen/generator/analyzer"
	"golang.org/x/tools/go/analysis/analysistest"
)

func TestAnalyzer(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer.Analyzer, "mistakes", "generated", "concrete", "wiring")
}
