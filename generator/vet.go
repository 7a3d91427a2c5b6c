package generator

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/output"
	"golang.org/x/tools/go/packages"
)

// A Package is a package that somebody else has parsed, comments included, and
// type-checked.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Types *types.Package
	Info  *types.Info // Scopes is needed; with Defs, Uses and Selections more is found
}

// Vet finds the errors and warnings that [Run] would find in a package, the
// generated files being there or not, and limits that the package does not use. Paths are
// those of the file set.
func Vet(p Package) (found Diagnostics) {
	report := diag.NewReporter(p.Fset, "")
	if len(p.Files) > 0 {
		defer report.Recover(p.Fset.Position(p.Files[0].Package), func() { found = diagnosticsOf(report) })
	}
	if len(p.Files) > 0 && !gotypes.HasAliases() {
		report.At(p.Files[0].Package, "%s", gotypes.NoAliases)
		return diagnosticsOf(report)
	}
	pkg := &packages.Package{Fset: p.Fset, Types: p.Types, TypesInfo: p.Info, Imports: map[string]*packages.Package{}}
	for _, i := range p.Types.Imports() {
		pkg.Imports[i.Path()] = &packages.Package{PkgPath: i.Path(), Types: i}
	}
	wanted := map[directive.TypeID]bool{}
	var paths []string
	for _, file := range p.Files {
		// Directives must not refer to generated code.
		if !isGeneratedByUs(file) {
			pkg.Syntax = append(pkg.Syntax, file)
			paths = append(paths, p.Fset.PositionFor(file.FileStart, false).Filename)
			directive.AddLimitedTypes(file, wanted)
		}
	}
	concrete := directive.ConcreteTypes(wanted, pkg.Syntax, paths)
	var files []*directive.File
	for i, file := range pkg.Syntax {
		src := directive.Read(p.Fset, file, paths[i], report.At)
		src.AddConcrete(concrete[paths[i]], true)
		files = append(files, src)
	}
	directive.LinkMethods(files, report.At)
	directive.LinkPolicies(files, report.At)
	policies := slices.DeleteFunc(slices.Clone(files), func(src *directive.File) bool { return len(src.Policies)+len(src.Defaults) == 0 })
	var typed []*load.File
	names := load.NamesOf(pkg.Syntax)
	free := areFree(files, pkg.Syntax, paths, report)
	for _, src := range files {
		f := &load.File{Source: src, Pkg: pkg, Syntax: src.Syntax, Names: names, Policies: policies}
		if !hasImports(pkg, src) {
			checkImports(f, report)
		} else if free && len(src.Decls) > 0 && isComplete(f) {
			typed = append(typed, f)
		}
	}
	builder := &model.Builder{Report: report, Policies: map[*directive.File]*packages.Package{}}
	for _, src := range policies {
		if !hasImports(pkg, src) {
			return diagnosticsOf(report) // what it says of limits is not known
		}
		builder.Policies[src] = pkg
	}
	wrapped := builder.Build(typed)
	builder.Warn(wrapped)
	if !report.HasErrors() {
		wiring{p, report}.warn(wrapped)
		for _, f := range wrapped {
			render(f, report) // what is wrong with it shows when it is written
		}
	}
	return diagnosticsOf(report)
}

// isComplete reports whether all that a file's directives need is known. What
// the compiler reports, imports that only a generated file will have, and policies
// of other packages are left to others.
func isComplete(f *load.File) bool {
	if len(f.Source.Foreign()) > 0 {
		return false
	}
	for _, decl := range f.Source.Decls {
		for _, src := range decl.Sources {
			if !hasImports(f.Pkg, src) || len(src.Foreign()) > 0 {
				return false
			}
		}
		if load.TypeOf(decl, f.Pkg.Types) == nil || !load.IsSound(decl, f.Pkg.Types) {
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
			if c.Pos() < file.Package && c.Text == output.Header {
				return true
			}
		}
	}
	return false
}
