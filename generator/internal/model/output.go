package model

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/output"
)

// checkOut reports why a file's wrappers cannot be in another package.
func (b *Builder) checkOut(f *File) bool {
	pos := f.Source.Syntax.Name.Pos()
	from, to := f.Pkg.Types.Path(), f.Out.Types.Path()
	way := b.ImportWay(from, to)
	switch {
	case from == to:
		b.Report.At(pos, "-out names the directory of this package: leave it out")
	case strings.HasSuffix(f.Source.Path, "_test.go"):
		b.Report.At(pos, "no other package can import a test file: leave out -out for this package, or move its interfaces")
	case f.Pkg.Types.Name() == "main":
		b.Report.At(pos, "package main cannot be imported by %s: leave out -out for this package", to)
	case !gotypes.MayImport(to, from):
		b.Report.At(pos, "package %s is internal and cannot be imported by %s: choose a directory below its parent", from, to)
	case way != "":
		b.Report.At(pos, "import cycle: %s imports %s%s, which would import it for its wrappers: write them to a package that it does not import", from, to, way)
	default:
		return true
	}
	return false
}

// checkReachable reports what in a wrapper's interface the other package
// cannot name.
func (b *Builder) checkReachable(f *File, w *Wrapper) {
	pos := w.Decl.Spec.Name.Pos()
	if !ast.IsExported(w.Name) {
		b.Report.At(pos, "%s is unexported, so the wrapper cannot be in package %s: export it, or leave out -out", w.Name, f.Home.Path())
		return
	}
	for _, name := range w.Decl.Generates() {
		if file := f.Out.Names[name]; file != "" {
			b.Report.At(pos, "%s declares %s already, which is to be generated for %s: rename one of them%s", file, name, w.Name, w.Decl.RenameHint(name))
		}
	}
	for p := range w.TypeParams.TypeParams() {
		if bad := unreachable(p.Constraint(), f.Home); bad != nil {
			b.Report.At(pos, "%s cannot be wrapped: package %s cannot name the type %s.%s of its type parameter %s", w.Name, f.Home.Path(), bad.Pkg().Path(), bad.Name(), p.Obj().Name())
		}
	}
	for p := range w.TypeParams.TypeParams() {
		if name := f.hiddenType(p.Constraint()); name != "" {
			b.Report.At(pos, "%s cannot be wrapped: %s declares %s, and type parameter %s needs the type of that name that Go declares: rename it", w.Name, f.Out.Names[name], name, p.Obj().Name())
		}
	}
	for _, m := range w.Methods {
		gotypes.EachType(m.Type, func(t types.Type) {
			if field := unexportedMember(t); field != nil && field.Pkg() != f.Home {
				b.Report.At(pos, "%s cannot be wrapped: package %s cannot write a type with the unexported %s, which method %s needs: give the type a name", w.Name, f.Home.Path(), field.Name(), m.Name)
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

// CheckOutputs reports files that cannot all be written to other packages than
// those of their interfaces.
func (b *Builder) CheckOutputs(files []*File) {
	asked := map[string]*File{}
	declared := map[*output.Package]map[string]*Wrapper{}
	for _, f := range files {
		if f.Out == nil {
			continue
		}
		path := f.Out.Path(f.Source.Path)
		if before := asked[path]; before != nil {
			b.Report.At(f.Source.Syntax.Name.Pos(), "%s would be generated for %s as well: rename one of the source files, or write them to packages of their own",
				b.Report.Short(path), b.Report.Short(before.Source.Path))
			continue
		}
		asked[path] = f
		if err := f.Out.MayReplace(path, f.Pkg.PkgPath); err != nil {
			b.Report.At(f.Source.Syntax.Name.Pos(), "%s %v", b.Report.Short(path), err)
		}
		if declared[f.Out] == nil {
			declared[f.Out] = map[string]*Wrapper{}
		}
		for _, w := range f.Wrappers {
			b.checkDeclared(w, declared[f.Out])
		}
	}
}

// checkDeclared reports a wrapper that would declare a name that an earlier
// wrapper declares, and adds its names to those declared.
func (b *Builder) checkDeclared(w *Wrapper, declared map[string]*Wrapper) {
	names := w.Decl.Generates()
	for _, r := range w.Rules {
		names = append(names, r.VarName)
	}
	for _, name := range names {
		if before := declared[name]; before != nil {
			b.Report.At(w.Decl.Spec.Name.Pos(), "%s would be generated for %s.%s as well: write them to packages of their own%s", name, before.pkgName, before.Name, w.Decl.RenameHint(name))
			break
		}
		declared[name] = w
	}
}
