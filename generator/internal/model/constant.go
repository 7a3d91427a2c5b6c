package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strconv"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/internal/spec"
)

// applyConstants finds the constants that the rules of a wrapper refer to, so that they have
// in each build what they have there. The value of a constant that the generated code cannot
// name is written as a number: it must be the same in every build.
func (b *Builder) applyConstants(f *File, w *Wrapper) {
	for _, r := range w.Rules {
		r.Constants = map[string]*expr.Expr{}
		for _, c := range r.Named() {
			known, _ := b.constants.Load(c)
			if x := known.(*expr.Expr); isReference(x) && b.mayName(f, x) {
				r.Constants[c.Option] = x
			}
		}
		if r.Max != nil {
			b.mayName(f, r.Max)
		}
	}
	for _, m := range w.Methods {
		m.EachExpr(func(x *expr.Expr) {
			if x.IsFixed() && !x.IsPart() {
				b.mayName(f, x)
			}
		})
	}
}

// isReference reports whether an expression names more than units of time.
func isReference(x *expr.Expr) bool {
	named := false
	x.EachOutside(func(_ *ast.Ident, obj types.Object) {
		name, ok := obj.(*types.PkgName)
		named = named || expr.IsPackageLevel(obj) || ok && name.Imported().Path() != "time"
	})
	return named
}

// mayName reports whether the generated code can name the constants of an expression. It
// reports one that it cannot and that depends on the build.
func (b *Builder) mayName(f *File, x *expr.Expr) bool {
	may := true
	x.EachOutside(func(id *ast.Ident, obj types.Object) {
		pkg := obj.Pkg()
		if name, ok := obj.(*types.PkgName); ok {
			pkg = name.Imported()
		} else if !expr.IsPackageLevel(obj) || pkg == f.Home {
			return
		} else if !obj.Exported() {
			may = false
		}
		may = may && gotypes.MayImport(f.Home.Path(), pkg.Path()) && (b.ImportWay == nil || pkg.Path() == f.Home.Path() || b.ImportWay(pkg.Path(), f.Home.Path()) == "")
	})
	if may {
		return true
	}
	v := variation{fset: b.Report.Fset, home: output.Constraint(f.Source.Path, f.Content), seen: map[types.Object]bool{}}
	x.EachOutside(func(id *ast.Ident, obj types.Object) { v.see(obj) })
	if v.file != "" {
		b.Report.At(x.Source.Pos, "%s: %s depends on the build, in %s, and package %s cannot name it: export what it names, or declare it in a file without build constraints",
			x.Option, x.Source.Text, b.Report.Short(v.file), f.Home.Path()).Mark(x.Source.Tail(0))
	}
	return false
}

// A variation is the search for a constant that is another one in another build.
type variation struct {
	fset *token.FileSet
	home string // the constraints of the generated file
	seen map[types.Object]bool
	file string // with build constraints that declares one, or ""
}

// see looks at what declares a constant, and at the constants that it is made of.
func (v *variation) see(obj types.Object) {
	if _, ok := obj.(*types.Const); !ok || !expr.IsPackageLevel(obj) || v.seen[obj] {
		return
	}
	v.seen[obj] = true
	path := v.fset.PositionFor(obj.Pos(), false).Filename
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if own := output.Constraint(path, content); own != "" && own != v.home {
		v.file = path
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			if !slices.ContainsFunc(spec.Names, func(id *ast.Ident) bool { return id.Name == obj.Name() }) {
				continue
			}
			if len(spec.Values) > 0 {
				v.seeNames(spec, obj.Pkg(), file.Imports)
			} else { // it repeats another one
				v.seeNames(gen, obj.Pkg(), file.Imports)
			}
		}
	}
}

// seeNames looks at the constants that a declaration names.
func (v *variation) seeNames(decl ast.Node, pkg *types.Package, imports []*ast.ImportSpec) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				for _, p := range pkg.Imports() {
					if isImported(p, id.Name, imports) {
						v.see(p.Scope().Lookup(n.Sel.Name))
					}
				}
			}
			return false
		case *ast.Ident:
			v.see(pkg.Scope().Lookup(n.Name))
		}
		return true
	})
}

// isImported reports whether a file knows a package by a name.
func isImported(p *types.Package, name string, imports []*ast.ImportSpec) bool {
	return slices.ContainsFunc(imports, func(s *ast.ImportSpec) bool {
		path, _ := strconv.Unquote(s.Path.Value)
		return path == p.Path() && (s.Name == nil && p.Name() == name || s.Name != nil && s.Name.Name == name)
	})
}

// PerText returns the time that the max of a rule refers to, as the directive gives it.
func (r *Rule) PerText() string { return r.textOf("window", r.Per()) }

// BlockText, ReserveText and MaxText do so for other options.
func (r *Rule) BlockText() string   { return r.textOf("block", spec.DurationText(r.Block())) }
func (r *Rule) ReserveText() string { return r.textOf("reserve", spec.DurationText(r.Reserve())) }
func (r *Rule) MaxText() string     { return r.textOf("max", r.Settings.MaxText()) }

// textOf returns the text of the constant that a rule refers to, or else another.
func (r *Rule) textOf(option, other string) string {
	if x := r.Constants[option]; x != nil {
		return x.Source.Text
	}
	return other
}
