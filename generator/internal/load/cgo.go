package load

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// typeCheckCgo checks packages that import "C", or import some that do: only
// the go command can rewrite their files, and it builds what it needs for that.
// It first sees the files as they are on disk, because any overlay makes
// go/packages read all dependencies from source. An old generated file that the
// go command stumbles over is worth the second, slower way.
func (p *Program) typeCheckCgo(annotated []*dir) ([]*packages.Package, error) {
	var paths []string
	stubs, contents := map[string]stub{}, map[string][]byte{}
	tests, imports := false, false
	for _, d := range p.dirs {
		for path, s := range d.overlay {
			stubs[path], contents[path] = s, s.content
		}
	}
	for _, d := range annotated {
		paths = append(paths, d.path)
		for _, src := range d.sources {
			tests = tests || strings.HasSuffix(src.Path, "_test.go")
			imports = imports || len(src.Imports) > 0
		}
	}
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedForTest,
		// Files that cgo has rewritten name their sources, and GOFLAGS may have -trimpath, which shortens these names.
		Dir: p.cfg.Dir, BuildFlags: append(slices.Clip(p.list.flags), "-trimpath=false"), Tests: tests, Fset: p.fset,
		ParseFile: func(fset *token.FileSet, path string, content []byte) (*ast.File, error) {
			if s, ok := stubs[path]; ok {
				if s.ast != nil {
					return s.ast, nil
				}
				content = s.content
			}
			return parser.ParseFile(fset, path, content, parser.SkipObjectResolution|parser.AllErrors)
		},
	}
	if !p.list.packagesReadExports() {
		config.Mode |= packages.NeedDeps // which reads all of them from source
	}
	if !imports {
		pkgs, err := packages.Load(config, paths...)
		if err == nil && !slices.ContainsFunc(pkgs, isBroken) {
			return inOrder(pkgs), nil
		}
	}
	config.Overlay = contents
	pkgs, err := packages.Load(config, paths...)
	return inOrder(pkgs), err
}

// packagesReadExports reports whether go/packages can read export data. A
// golang.org/x/tools that is older than the go command may not, and go/packages then ends
// the program.
func (l *goList) packagesReadExports() bool {
	file, err := l.openExport("internal/goarch")
	if err != nil {
		return true // nothing is compiled yet, and it says itself what it cannot read
	}
	defer file.Close()
	// Up to Go 1.27 the go command gives archives, which Read does not take.
	data, err := gcexportdata.NewReader(file)
	if err == nil {
		_, err = gcexportdata.Read(data, token.NewFileSet(), map[string]*types.Package{}, "internal/goarch")
	}
	return err == nil
}

// inOrder sorts packages; the plain one comes before the same one compiled for
// a test.
func inOrder(pkgs []*packages.Package) []*packages.Package {
	slices.SortFunc(pkgs, func(a, b *packages.Package) int {
		return cmp.Or(cmp.Compare(len(a.ForTest), len(b.ForTest)), strings.Compare(a.ID, b.ID))
	})
	return pkgs
}

func isBroken(p *packages.Package) bool { return len(compilerErrors(p)) > 0 }

// compilerErrors returns a package's errors. It leaves out what the go command
// said when it tried to compile the package, stubs missing, for export data:
// the type checker has the last word.
func compilerErrors(p *packages.Package) []packages.Error {
	errs := slices.DeleteFunc(slices.Clone(p.Errors), func(e packages.Error) bool {
		return e.Kind == packages.ListError && strings.HasPrefix(e.Msg, "# ")
	})
	if len(errs) == 0 && p.Types == nil {
		return p.Errors
	}
	return errs
}
