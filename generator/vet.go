package generator

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// A Package is a package that somebody else has parsed, comments included, and
// type-checked.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Types *types.Package
	Info  *types.Info // Scopes is needed
}

// Vet finds the errors and warnings that [Run] would find in a package, the
// generated files being there or not. Paths are those of the file set.
func Vet(p Package) Diagnostics {
	r := &run{reporter: reporter{fset: p.Fset}}
	pkg := &packages.Package{Types: p.Types, TypesInfo: p.Info, Imports: map[string]*packages.Package{}}
	for _, i := range p.Types.Imports() {
		pkg.Imports[i.Path()] = &packages.Package{PkgPath: i.Path(), Types: i}
	}
	wanted := map[typeID]bool{}
	var paths []string
	for _, file := range p.Files {
		// What is generated must have no part in what may be written.
		if !isGeneratedByUs(file) {
			pkg.Syntax = append(pkg.Syntax, file)
			paths = append(paths, p.Fset.PositionFor(file.FileStart, false).Filename)
			addLimitedTypes(file, wanted)
		}
	}
	concrete := concreteTypes(wanted, pkg.Syntax, paths)
	var files []*sourceFile
	for i, file := range pkg.Syntax {
		src := readDirectives(file, paths[i], r.at)
		src.addConcrete(concrete[paths[i]], true)
		files = append(files, src)
	}
	r.linkMethods(files)
	var checked []*checkedFile
	for _, src := range files {
		f := &checkedFile{src: src, pkg: pkg, syntax: src.ast, home: p.Types}
		if len(src.ifaces) > 0 && f.isComplete(files) {
			r.checkFile(f, map[string]bool{})
			checked = append(checked, f)
		}
	}
	r.warnings(checked)
	return r.diagnostics()
}

// isComplete reports whether all that a file's directives need is known. What
// the compiler reports, and imports that only a generated file will have, are
// left to others.
func (f *checkedFile) isComplete(files []*sourceFile) bool {
	for _, src := range files {
		for _, spec := range src.imports {
			if f.pkg.Imports[spec.path] == nil {
				return false
			}
		}
	}
	for _, decl := range f.src.ifaces {
		if decl.declared(f.pkg.Types) == nil || !decl.isSound(f.pkg.Types) {
			return false
		}
	}
	return true
}

func isGeneratedByUs(file *ast.File) bool {
	if !ast.IsGenerated(file) {
		return false
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() < file.Package && c.Text == header {
				return true
			}
		}
	}
	return false
}
