// Package typecheck finds the errors that a compiler would find in code that tests have
// written, in a tenth of the time: nothing is compiled.
package typecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// Test fails a test for each error in the packages that patterns name in the module or
// workspace of a directory, their tests included.
func Test(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	config := packages.Config{Dir: dir, Tests: true, Mode: Mode, ParseFile: Parser(dir)}
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

// Mode is what packages are to be loaded with for their types and those of their imports to be
// found in source.
const Mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
	packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes

// Parser returns what parses files below a directory whole, and of others the declarations
// alone: no error is looked for in their functions.
func Parser(dir string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	return func(fset *token.FileSet, path string, source []byte) (*ast.File, error) {
		file, err := parser.ParseFile(fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
		// What cgo and go test have written lies in the cache, with no such extension.
		if file == nil || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return file, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok {
				f.Body = nil
			}
		}
		return file, err
	}
}
