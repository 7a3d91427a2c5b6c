package generator

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An outPackage is a package that wrappers are written to instead of that of
// their interfaces.
type outPackage struct {
	dir   string
	types *types.Package
	names map[string]string // what its other files declare, and in which of them
}

// openOut finds out about the package in the directory [Config].Out.
func (r *run) openOut() (*outPackage, error) {
	dir := r.cfg.Out
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.cfg.Dir, dir)
	}
	importPath, err := importPathOf(dir)
	if err != nil {
		return nil, err
	}
	name, given := r.cfg.Package, r.cfg.Package != ""
	if !given {
		name = filepath.Base(dir)
	}
	o := &outPackage{dir: dir, names: map[string]string{}}
	for _, file := range goFiles(dir) {
		p := filepath.Join(dir, file)
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue // the compiler's to tell
		}
		if content, err := os.ReadFile(p); err == nil && isOurs(content) {
			if f.Name.Name != name && !given {
				name = f.Name.Name
			}
			continue
		}
		if f.Name.Name != name && given {
			return nil, fmt.Errorf("-pkg %s: %s belongs to package %s", name, shortPath(r.dir, p), f.Name.Name)
		}
		name, given = f.Name.Name, true
		for _, declared := range declaredNames(f) {
			o.names[declared] = shortPath(r.dir, p)
		}
	}
	if !token.IsIdentifier(name) || name == "_" || name == "main" {
		return nil, fmt.Errorf("%s cannot be the name of the package in %s: choose one with -pkg", strconv.Quote(name), shortPath(r.dir, dir))
	}
	o.types = types.NewPackage(importPath, name)
	return o, nil
}

var moduleLine = regexp.MustCompile("(?m)^module[ \t]+[\"`]?([^\\s\"`]+)")

// importPathOf returns the import path of a directory, which need not exist.
func importPathOf(dir string) (string, error) {
	for root, below := dir, ""; ; root, below = filepath.Dir(root), path.Join(filepath.Base(root), below) {
		mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			m := moduleLine.FindSubmatch(mod)
			if m == nil {
				return "", fmt.Errorf("-out: %s names no module", filepath.Join(root, "go.mod"))
			}
			return path.Join(string(m[1]), below), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) || root == filepath.Dir(root) {
			return "", fmt.Errorf("-out: %s is in no module, so nothing could import it", dir)
		}
	}
}

func declaredNames(f *ast.File) []string {
	var names []string
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range decl.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// outputPath returns the path of the file generated for a source file.
func (r *run) outputPath(source string) string {
	if r.out == nil {
		return outputName(source)
	}
	return filepath.Join(r.out.dir, filepath.Base(outputName(source)))
}

// checkOut reports why a file's wrappers cannot be in another package.
func (r *run) checkOut(f *checkedFile) bool {
	if r.out == nil {
		return true
	}
	pos := f.src.ast.Name.Pos()
	from, to := f.pkg.Types.Path(), r.out.types.Path()
	switch way := r.importWay(from, to); {
	case from == to:
		r.at(pos, "-out names the directory of this package: leave it out")
	case strings.HasSuffix(f.src.path, "_test.go"):
		r.at(pos, "no other package can import a test file: leave out -out for this package, or move its interfaces")
	case f.pkg.Types.Name() == "main":
		r.at(pos, "package main cannot be imported by %s: leave out -out for this package", to)
	case !mayImport(to, from):
		r.at(pos, "package %s is internal and cannot be imported by %s: choose a directory below its parent", from, to)
	case way != "":
		r.at(pos, "import cycle: %s imports %s%s, which would import it for its wrappers: write them to a package that it does not import", from, to, way)
	default:
		return true
	}
	return false
}

// importWay says by way of which package from imports to; it is "" if it does
// not at all.
func (r *run) importWay(from, to string) string {
	seen := map[string]bool{}
	var imports func(p string) bool
	imports = func(p string) bool {
		if p == to {
			return true
		}
		if seen[p] || r.list.pkgs[p] == nil {
			return false
		}
		seen[p] = true
		return slices.ContainsFunc(r.list.pkgs[p].Imports, imports)
	}
	if l := r.list.pkgs[from]; l != nil && from != to {
		for _, p := range l.Imports {
			if p == to {
				return " itself"
			}
			if imports(p) {
				return " by way of " + p
			}
		}
	}
	return ""
}

// checkReachable reports what in a wrapper's interface the other package
// cannot name.
func (r *run) checkReachable(f *checkedFile, w *wrapper) {
	pos := w.decl.spec.Name.Pos()
	if !ast.IsExported(w.name) {
		r.at(pos, "%s is unexported, so the wrapper cannot be in package %s: export it, or leave out -out", w.name, f.home.Path())
		return
	}
	for _, name := range w.decl.generates() {
		if file := r.out.names[name]; file != "" {
			r.at(pos, "%s declares %s already, which is to be generated for %s: rename one of them", file, name, w.name)
		}
	}
	for p := range w.tparams.TypeParams() {
		if bad := unreachable(p.Constraint(), f.home); bad != nil {
			r.at(pos, "%s cannot be wrapped: package %s cannot name the type %s.%s of its type parameter %s", w.name, f.home.Path(), bad.Pkg().Path(), bad.Name(), p.Obj().Name())
		}
	}
	for _, m := range w.methods {
		eachType(m.sig, map[types.Type]bool{}, func(t types.Type) {
			if field := unexportedMember(t); field != nil && field.Pkg() != f.home {
				r.at(pos, "%s cannot be wrapped: package %s cannot write a type with the unexported %s, which method %s needs: give the type a name", w.name, f.home.Path(), field.Name(), m.name)
			}
		})
	}
}

// unexportedMember returns an unexported field or method of a type without a
// name, or nil.
func unexportedMember(t types.Type) types.Object {
	switch t := t.(type) {
	case *types.Struct:
		for f := range t.Fields() {
			if !f.Exported() {
				return f
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if !m.Exported() {
				return m
			}
		}
	}
	return nil
}

// refuseUnexported reports names in an expression that the other package
// cannot use. A constant is written as a number.
func refuseUnexported(e *checkedExpr, home *types.Package, report reportFunc) bool {
	ok := true
	no := func(id *ast.Ident, at token.Pos) {
		report(e.at(at), "%s is unexported, and the wrapper is to be in package %s: export it, or leave out -out", id.Name, home.Path()).over(id.Name)
		ok = false
	}
	if e.con != nil && e.option != "key" {
		return true
	}
	e.eachOutside(func(id *ast.Ident, obj types.Object) {
		if isPackageLevel(obj) && obj.Pkg() != home && !obj.Exported() {
			no(id, id.Pos())
		}
	})
	see := func(n ast.Node) bool {
		if sel, isSel := n.(*ast.SelectorExpr); isSel && !sel.Sel.IsExported() {
			at := sel.Sel.Pos()
			if !at.IsValid() { // an embedded field that a guard checks
				at = e.base
			}
			no(sel.Sel, at)
		}
		return true
	}
	ast.Inspect(e.node, see)
	for _, g := range e.guards {
		ast.Inspect(g.subject, see)
	}
	return ok
}
