package generator

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A checkedFile is a source file whose wrappers are ready to be written.
type checkedFile struct {
	src      *sourceFile
	pkg      *packages.Package
	syntax   *ast.File // as type-checked: src.ast, or what cgo made of it
	content  []byte    // of the source file
	wrappers []*wrapper
	home     *types.Package // that the generated file belongs to
}

// check type-checks the packages that have directives and what the directives
// say. Packages without directives are never type-checked.
func (r *run) check(dirs []*packageDir) []*checkedFile {
	annotated := slices.DeleteFunc(slices.Clone(dirs), func(d *packageDir) bool { return d.broken || len(d.sources) == 0 })
	if len(annotated) == 0 {
		return nil
	}
	pkgs, err := r.typeCheck(dirs, annotated)
	if err != nil {
		r.atPosition(token.Position{}, "%s", strings.TrimSpace(err.Error()))
		return nil
	}
	checked := make([][]*checkedFile, len(annotated))
	inParallel(len(annotated), func(i int) { checked[i] = r.checkPackage(pkgs, annotated[i]) })
	return slices.Concat(checked...)
}

// checkPackage checks the files of a package that have directives.
func (r *run) checkPackage(pkgs []*packages.Package, d *packageDir) []*checkedFile {
	var files []*checkedFile
	vars := map[*packages.Package]map[string]bool{} // the names declared so far
	for _, src := range d.sources {
		if len(src.ifaces) == 0 {
			continue // its directives belong to a type of another file
		}
		pkg, syntax := r.find(pkgs, src)
		if pkg == nil {
			if !r.reportLoad(pkgs, d) {
				r.at(src.ast.Package, "this file is not part of package %s as the go command sees it", d.path)
			}
			continue
		}
		if r.reportBroken(pkg, d) {
			continue
		}
		f := &checkedFile{src: src, pkg: pkg, syntax: syntax, content: d.overlay[src.path].content, home: pkg.Types}
		if r.out != nil {
			f.home = r.out.types
		}
		if !r.checkOut(f) {
			continue
		}
		if vars[pkg] == nil {
			vars[pkg] = r.namesAt(f)
		}
		r.checkFile(f, vars[pkg])
		files = append(files, f)
	}
	return files
}

// checkFile checks the interfaces of a file and their limits. Their variables
// get names that are not taken, and take them.
func (r *run) checkFile(f *checkedFile, vars map[string]bool) {
	scopes := r.scopes(f)
	for _, decl := range f.src.ifaces {
		w := r.newWrapper(f, decl)
		if w == nil {
			continue
		}
		r.applyLimits(w, scopes, func(base string) string {
			name := free(base, vars)
			vars[name] = true
			return name
		})
		f.wrappers = append(f.wrappers, w)
	}
}

// namesAt returns every name that a generated declaration must not have.
func (r *run) namesAt(f *checkedFile) map[string]bool {
	taken := map[string]bool{}
	names := packageNames(f.pkg)
	if f.home != f.pkg.Types {
		names = slices.Collect(maps.Keys(r.out.names))
	}
	for _, name := range names {
		taken[name] = true
	}
	return taken
}

// packageNames returns every name that a package-level declaration must not
// have: the package's own and those that one of its files imports.
func packageNames(p *packages.Package) []string {
	names := p.Types.Scope().Names()
	for _, file := range p.Syntax {
		if s := p.TypesInfo.Scopes[file]; s != nil {
			names = append(names, s.Names()...)
		}
	}
	return names
}

// free returns base, or base with the first number from 2 that makes it a
// name not taken.
func free(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[name] || token.IsKeyword(name) || name == "_" || name == ""; n++ {
		name = fmt.Sprint(base, n)
	}
	return name
}

// scopes returns a function that tells in which scope the directives of a
// method are checked: that of the file in which they stand.
func (r *run) scopes(f *checkedFile) func(*wrapper, *method) *exprScope {
	known := map[*sourceFile]*exprScope{f.src: newExprScope(r, f)}
	return func(w *wrapper, m *method) *exprScope {
		src := f.src
		if other := w.decl.sources[m.name]; other != nil {
			src = other
		}
		if known[src] == nil {
			_, syntax := r.find([]*packages.Package{f.pkg}, src)
			known[src] = newExprScope(r, &checkedFile{src: src, pkg: f.pkg, syntax: syntax, home: f.home})
		}
		return known[src]
	}
}

// declared returns the object of the interface to wrap. For a concrete type
// whose interface is not known yet it is the type's own.
func (decl *ifaceDecl) declared(pkg *types.Package) *types.TypeName {
	obj, ok := pkg.Scope().Lookup(decl.interfaceName()).(*types.TypeName)
	if decl.concrete != nil && (decl.bare || !ok || !isSound(obj.Type())) {
		obj, _ = pkg.Scope().Lookup(decl.spec.Name.Name).(*types.TypeName)
	}
	return obj
}

// isSound reports whether every type that the interface needs is valid.
func (decl *ifaceDecl) isSound(pkg *types.Package) bool {
	obj := decl.declared(pkg)
	if obj == nil {
		return true // it belongs to another package of the directory
	}
	if named, ok := obj.Type().(*types.Named); ok && decl.concrete != nil && !types.IsInterface(named) {
		return isSound(methodsOf(named))
	}
	return isSound(obj.Type())
}
