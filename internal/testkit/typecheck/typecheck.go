// Package typecheck finds the errors that a compiler would find in code that tests have
// written, in a tenth of the time: nothing is compiled but what the code imports from
// elsewhere, which the go command has compiled before.
package typecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// A program is some packages that are checked, and those that they import.
type program struct {
	fset    *token.FileSet
	checked map[string]*types.Package // by ID
	others  map[string]*types.Package // by path
	errs    []error
}

// Test fails a test for each error in the packages that patterns name in the module of a
// directory, their tests included.
func Test(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	config := packages.Config{Dir: dir, Tests: true, Mode: packages.NeedName | packages.NeedImports | packages.NeedCompiledGoFiles | packages.NeedModule}
	roots, err := packages.Load(&config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{fset: token.NewFileSet(), checked: map[string]*types.Package{}, others: map[string]*types.Package{}}
	var elsewhere []string
	for _, root := range roots {
		for path, imported := range root.Imports {
			if !inMainModule(imported) && path != "C" && path != "unsafe" {
				elsewhere = append(elsewhere, path)
			}
		}
	}
	loaded, err := packages.Load(&packages.Config{Dir: dir, Fset: p.fset, Mode: packages.NeedName | packages.NeedTypes}, elsewhere...)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loaded {
		p.others[l.PkgPath] = l.Types
	}
	tested := map[string]bool{} // packages that have a variant with their tests
	for _, root := range roots {
		tested[root.PkgPath] = tested[root.PkgPath] || strings.Contains(root.ID, " [")
	}
	checked := 0
	for _, root := range roots {
		for _, err := range root.Errors {
			t.Error(err)
		}
		switch {
		case strings.HasSuffix(root.ID, ".test"): // that only calls tests
		case tested[root.PkgPath] && root.ID == root.PkgPath:
		default:
			p.check(root)
			checked++
		}
	}
	for _, err := range p.errs {
		t.Error(err)
	}
	if checked == 0 || len(loaded) == 0 {
		t.Errorf("%d packages are checked, which import %d others", checked, len(loaded))
	}
}

// inMainModule reports whether a package is one of the module that is checked.
func inMainModule(p *packages.Package) bool { return p.Module != nil && p.Module.Main }

// check type-checks a package, and before it those of the module that it imports.
func (p *program) check(pkg *packages.Package) *types.Package {
	if known := p.checked[pkg.ID]; known != nil {
		return known
	}
	var files []*ast.File
	for _, path := range pkg.CompiledGoFiles {
		if !strings.HasSuffix(path, ".go") && !strings.Contains(path, "-d") {
			continue // assembly
		}
		file, err := parser.ParseFile(p.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		files = append(files, file)
	}
	config := types.Config{
		Sizes:    types.SizesFor("gc", goruntime.GOARCH),
		Error:    func(err error) { p.errs = append(p.errs, err) },
		Importer: from(func(path string) *types.Package { return p.imported(pkg, path) }),
	}
	checked, _ := config.Check(pkg.PkgPath, p.fset, files, nil) // Error has been told
	p.checked[pkg.ID] = checked
	return checked
}

// imported returns what a package imports by a path.
func (p *program) imported(by *packages.Package, path string) *types.Package {
	if path == "unsafe" {
		return types.Unsafe
	}
	if imported := by.Imports[path]; imported != nil && inMainModule(imported) {
		return p.check(imported)
	}
	return p.others[path]
}

// from is an importer.
type from func(path string) *types.Package

func (f from) Import(path string) (*types.Package, error) {
	if p := f(path); p != nil {
		return p, nil
	}
	return nil, &os.PathError{Op: "import", Path: path, Err: os.ErrNotExist}
}
