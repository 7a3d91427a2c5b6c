// Package typecheck finds the errors that a compiler would find in code that tests have
// written, in a tenth of the time: nothing is compiled.
package typecheck

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// Test fails a test for each error in the packages that patterns name in the module or
// workspace of a directory, their tests included. Flags of go build may stand before these.
func Test(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	config := packages.Config{Dir: dir, Tests: true, Mode: Mode}
	for len(patterns) > 0 && strings.HasPrefix(patterns[0], "-") {
		config.BuildFlags, patterns = append(config.BuildFlags, patterns[0]), patterns[1:]
	}
	checked, err := packages.Load(&config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(checked) == 0 {
		t.Errorf("%v are no packages", patterns)
	}
	tested := map[string]bool{} // packages that have a variant with their tests
	for _, p := range checked {
		tested[p.PkgPath] = tested[p.PkgPath] || strings.Contains(p.ID, " [")
	}
	for _, p := range checked {
		if tested[p.PkgPath] && p.ID == p.PkgPath {
			continue
		}
		for _, err := range p.Errors {
			t.Error(err)
		}
	}
}

// Mode is what packages are to be loaded with for their types to be read from source. What they
// import is declared alone: errors in its functions are not looked for.
const Mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
	packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes
