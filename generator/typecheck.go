package generator

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// typeCheck checks the annotated packages, without function bodies. Code that
// names a wrapper compiles whether or not it is written yet.
func (r *run) typeCheck(dirs, annotated []*packageDir) ([]*packages.Package, error) {
	paths := map[string]bool{}
	for _, d := range annotated {
		d.read(r)
		importsOf(d.plain, paths)
		importsOf(d.inside, paths)
		importsOf(d.outside, paths)
		for _, src := range d.sources {
			for _, spec := range src.imports {
				paths[spec.path] = true
			}
		}
	}
	r.list.need(paths)
	if slices.ContainsFunc(annotated, r.needsCgo) {
		return r.typeCheckCgo(dirs, annotated)
	}
	pkgs := r.typeCheckIn(newUniverse(r, annotated), annotated)
	if slices.ContainsFunc(pkgs, func(p *packages.Package) bool { return len(p.Errors) > 0 }) {
		// Perhaps they name wrappers of packages that are not in this run, and
		// not generated yet.
		if others := r.annotatedImports(dirs); len(others) > 0 {
			pkgs = r.typeCheckIn(newUniverse(r, slices.Concat(annotated, others)), annotated)
		}
	}
	return pkgs, nil
}

func (r *run) typeCheckIn(u *universe, annotated []*packageDir) []*packages.Package {
	var pkgs []*packages.Package
	for _, d := range annotated {
		pkgs = append(pkgs, d.typeCheck(u, plainPackage))
		if d.hasTests() {
			u := u.withTests(d)
			pkgs = append(pkgs, d.typeCheck(u, plainPackage), d.typeCheck(u, externalTest))
		}
	}
	return pkgs
}

// annotatedImports returns the packages with directives that are not in this
// run and that packages in it import. What is wrong with them is reported when
// they are generated for.
func (r *run) annotatedImports(dirs []*packageDir) []*packageDir {
	quiet := &run{reporter: reporter{fset: r.fset, dir: r.dir}, cfg: r.cfg, list: r.list}
	var others []*packageDir
	for _, p := range r.list.pkgs {
		if p.Standard || p.Dir == "" || p.isDownloaded() || slices.ContainsFunc(dirs, func(d *packageDir) bool { return d.path == p.ImportPath }) {
			continue
		}
		others = append(others, newPackageDir(p))
	}
	slices.SortFunc(others, func(a, b *packageDir) int { return strings.Compare(a.path, b.path) })
	quiet.parse(others)
	others = slices.DeleteFunc(others, func(d *packageDir) bool { return d.broken || len(d.sources) == 0 })
	for _, d := range others {
		d.read(quiet)
	}
	return others
}

// needsCgo reports whether a package imports "C" or, by any way, a package
// outside of the standard library that does and has no export data.
func (r *run) needsCgo(d *packageDir) bool {
	seen := map[string]bool{}
	var check func(path string) bool
	check = func(path string) bool {
		p := r.list.pkgs[path]
		if p == nil || p.Standard || seen[path] {
			return false
		}
		seen[path] = true
		return len(p.CgoFiles) > 0 && (p.Export == "" || path == d.path) || slices.ContainsFunc(p.Imports, check)
	}
	return check(d.path)
}

// The packages that one directory holds.
type packageKind int

const (
	plainPackage packageKind = iota // with its own tests in a universe made for them
	externalTest
)

// read parses the files of an annotated package. Generated files are left out:
// stubs in the source files stand for them.
func (d *packageDir) read(r *run) {
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
			files[i], errs[i] = parser.ParseFile(r.fset, path, nil, parser.SkipObjectResolution|parser.AllErrors)
		})
	}
	all.Wait()
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

// hasTests reports whether test files have directives.
func (d *packageDir) hasTests() bool {
	return slices.ContainsFunc(d.sources, func(src *sourceFile) bool { return strings.HasSuffix(src.path, "_test.go") })
}

// typeCheck checks one of the packages in a directory.
func (d *packageDir) typeCheck(u *universe, kind packageKind) *packages.Package {
	if p := u.checked[d.path]; p != nil && kind == plainPackage {
		return p
	}
	p := &packages.Package{
		PkgPath: d.path, Fset: u.run.fset, Imports: map[string]*packages.Package{},
		Syntax:    d.plain,
		TypesInfo: &types.Info{Scopes: map[ast.Node]*types.Scope{}},
		Errors:    d.faults,
	}
	switch {
	case kind == externalTest:
		p.PkgPath, p.ForTest, p.Syntax = d.path+"_test", d.path, d.outside
	case u.tested == d.path:
		p.ForTest, p.Syntax = d.path, slices.Concat(d.plain, d.inside)
	}
	listed := u.list.pkgs[d.path]
	config := u.config(listed, func(err types.Error) {
		p.Errors = append(p.Errors, packages.Error{Pos: u.run.fset.Position(err.Pos).String(), Msg: err.Msg, Kind: packages.TypeError})
	})
	if kind == plainPackage {
		u.checked[d.path] = p
	}
	p.Types, _ = config.Check(p.PkgPath, p.Fset, p.Syntax, p.TypesInfo)
	p.Name = p.Types.Name()
	for _, src := range d.sources {
		for _, spec := range src.imports {
			if pkg, err := (importerFrom{u, listed}).Import(spec.path); err == nil && pkg.Name() != "main" && mayImport(d.path, pkg.Path()) {
				p.Imports[spec.path] = &packages.Package{PkgPath: pkg.Path(), Types: pkg}
			}
		}
	}
	return p
}

// find returns the package that a source file was type-checked in, and the
// file as it was. A file that imports "C" is checked as cgo has rewritten it,
// with line directives that name the source.
func (r *run) find(pkgs []*packages.Package, src *sourceFile) (*packages.Package, *ast.File) {
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			if f == src.ast || r.fset.Position(f.Package).Filename == src.path {
				return p, f
			}
		}
	}
	return nil, nil
}

// isAffected reports whether errors of a package reach an interface to wrap:
// one stands in its declaration, or a type it needs is not valid.
func isAffected(p *packages.Package, d *packageDir, fset *token.FileSet) bool {
	for _, src := range d.sources {
		for _, decl := range src.ifaces {
			from, to := fset.Position(decl.spec.Pos()), fset.Position(decl.spec.End())
			for _, e := range p.Errors {
				if at := parsePosition(e.Pos); decl.concrete == nil && at.Filename == src.path && from.Line <= at.Line && at.Line <= to.Line {
					return true
				}
			}
			if !decl.isSound(p.Types) {
				return true
			}
		}
	}
	return false
}

// isSound reports whether every type that a wrapper of t has to write is valid.
func isSound(t types.Type) bool {
	sound := true
	see := func(t types.Type) {
		eachType(t, map[types.Type]bool{}, func(t types.Type) { sound = sound && t != types.Typ[types.Invalid] })
	}
	switch t := t.(type) {
	case *types.Named:
		for p := range t.TypeParams().TypeParams() {
			see(p.Constraint())
		}
	case *types.Alias:
		for p := range t.TypeParams().TypeParams() {
			see(p.Constraint())
		}
	}
	if see(t.Underlying()); !sound {
		return false
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return true // not an interface: reported as such
	}
	for e := range iface.EmbeddedTypes() {
		if _, ok := e.Underlying().(*types.Interface); ok && !isSound(e) {
			return false
		}
	}
	for m := range iface.Methods() {
		see(m.Type())
	}
	return sound
}
