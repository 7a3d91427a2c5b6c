package load

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/output"
	"golang.org/x/tools/go/packages"
)

// The packages that one directory holds.
type packageKind int

const (
	plainPackage packageKind = iota // in the set made for them, together with its inner tests
	externalTest
)

// read parses the files of an annotated package. Generated files are left out:
// stubs in the source files stand for them.
func (d *dir) read(fset *token.FileSet) {
	files := make([]*ast.File, len(d.files))
	errs := make([]error, len(d.files))
	var all sync.WaitGroup
	for i, name := range d.files {
		path := filepath.Join(d.dir, name)
		s, stubbed := d.overlay[path]
		if stubbed {
			files[i] = s.ast // nil for a generated file
			continue
		}
		all.Go(func() {
			files[i], errs[i] = parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.AllErrors)
		})
	}
	ignored := make([]*ast.File, len(d.ignored))
	for i, name := range d.ignored {
		all.Go(func() { ignored[i] = parseHandwritten(fset, filepath.Join(d.dir, name)) })
	}
	all.Wait()
	d.otherBuilds = slices.DeleteFunc(ignored, func(f *ast.File) bool { return f == nil })
	for i, f := range files {
		if list, ok := errs[i].(scanner.ErrorList); ok {
			for _, e := range list {
				d.faults = append(d.faults, packages.Error{Pos: e.Pos.String(), Msg: e.Msg, Kind: packages.ParseError})
			}
		}
		switch {
		case f == nil || f.Name == nil:
		case !strings.HasSuffix(d.files[i], "_test.go"):
			d.plain = append(d.plain, f)
		case strings.HasSuffix(f.Name.Name, "_test"):
			d.outside = append(d.outside, f)
		default:
			d.inside = append(d.inside, f)
		}
	}
}

// parseHandwritten parses a file, or returns nil if it is generated or cannot be read.
func parseHandwritten(fset *token.FileSet, path string) *ast.File {
	content, err := os.ReadFile(path)
	if err != nil || output.IsOurs(content) {
		return nil
	}
	f, _ := parser.ParseFile(fset, path, content, parser.SkipObjectResolution)
	return f
}

// hasTests reports whether test files have directives.
func (d *dir) hasTests() bool {
	return slices.ContainsFunc(d.sources, func(src *directive.File) bool { return strings.HasSuffix(src.Path, "_test.go") })
}

// typeCheck checks one of the packages in a directory.
func (d *dir) typeCheck(s *packageSet, kind packageKind) *packages.Package {
	if p := s.checked[d.path]; p != nil && kind == plainPackage {
		return p
	}
	p := &packages.Package{
		PkgPath: d.path, Fset: s.fset, Imports: map[string]*packages.Package{},
		Syntax:    d.plain,
		TypesInfo: &types.Info{Scopes: map[ast.Node]*types.Scope{}},
		Errors:    d.faults,
	}
	if kind == externalTest {
		p.PkgPath, p.ForTest, p.Syntax = d.path+"_test", d.path, d.outside
	} else if s.tested == d.path {
		p.ForTest, p.Syntax = d.path, slices.Concat(d.plain, d.inside)
	}
	listed := s.list.pkgs[d.path]
	config := s.config(listed, func(err types.Error) {
		p.Errors = append(p.Errors, packages.Error{Pos: s.fset.Position(err.Pos).String(), Msg: err.Msg, Kind: packages.TypeError})
	})
	if kind == plainPackage {
		s.checked[d.path] = p
	}
	p.Types, _ = config.Check(p.PkgPath, p.Fset, p.Syntax, p.TypesInfo)
	p.Name = p.Types.Name()
	for _, src := range d.sources {
		for _, spec := range src.Imports {
			pkg, err := (importerFrom{s, listed}).Import(spec.Path)
			if in := s.list.pkgs[spec.Path]; err == nil && pkg == nil && in != nil {
				// It imports this package. Directives may use its policies, and no more.
				pkg = types.NewPackage(spec.Path, in.Name)
			}
			if err == nil && pkg != nil && pkg.Name() != "main" && gotypes.MayImport(d.path, pkg.Path()) {
				p.Imports[spec.Path] = &packages.Package{PkgPath: pkg.Path(), Types: pkg}
			}
		}
	}
	return p
}
