package expr

import (
	"go/ast"
	"go/types"

	"github.com/rategen/rategen/generator/internal/diag"
)

// EachOutside calls visit for every identifier that an expression takes from
// outside of itself, parameters excepted.
func (e *Expr) EachOutside(visit func(*ast.Ident, types.Object)) {
	ast.Inspect(e.Node, func(n ast.Node) bool { return e.visitIdent(n, visit) })
}

// visitIdent leaves out what is selected: it is found through its operand.
func (e *Expr) visitIdent(n ast.Node, visit func(*ast.Ident, types.Object)) bool {
	if sel, ok := n.(*ast.SelectorExpr); ok {
		ast.Inspect(sel.X, func(n ast.Node) bool { return e.visitIdent(n, visit) })
		return false
	}
	if id, ok := n.(*ast.Ident); ok && e.Params[id] == nil {
		if obj := e.Info.Uses[id]; obj != nil {
			visit(id, obj)
		}
	}
	return true
}

// IsPackageLevel reports whether an object is declared at package level.
func IsPackageLevel(obj types.Object) bool {
	return obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope()
}

// reachable reports names in an expression that the package it is written to
// cannot use.
func (s *Scope) reachable(e *Expr) bool {
	report := s.reporter(e.Option)
	if s.home != s.pkg && !refuseUnexported(e, s.home, report) {
		return false
	}
	return refuseHidden(e, s.home, report) && refuseFlags(e, report)
}

// unexported says that a name is, and in which package it would be needed.
const unexported = "%s is unexported, and the wrapper is to be in package %s: export it, or leave out -out"

// refuseHidden reports embedded pointers on the way that the package cannot
// compare with nil.
func refuseHidden(e *Expr, home *types.Package, report diag.Func) bool {
	for _, t := range Tests(e.Lower(Facts{}).Steps) {
		f := t.Embedded
		if f == nil || f.Exported() || f.Pkg() == home {
			continue
		}
		if f.Pkg() == e.pkg {
			report(e.at(e.base), unexported, f.Name(), home.Path()).Mark(f.Name())
			return false
		}
		report(e.Source.At(0), "%s uses the embedded pointer %s, which may be nil, and which package %s cannot test: %s", e.Source.Text, f.Name(), home.Path(), writeFunction).Mark(e.Source.Text)
		return false
	}
	return true
}

// refuseUnexported reports names in an expression that the other package
// cannot use. A constant is written as a number.
func refuseUnexported(e *Expr, home *types.Package, report diag.Func) bool {
	ok := true
	no := func(id *ast.Ident) {
		report(e.at(id.Pos()), unexported, id.Name, home.Path()).Mark(id.Name)
		ok = false
	}
	if e.IsFixed() && !e.IsPart() {
		return true
	}
	e.EachOutside(func(id *ast.Ident, obj types.Object) {
		if IsPackageLevel(obj) && obj.Pkg() != home && !obj.Exported() {
			no(id)
		}
	})
	ast.Inspect(e.Node, func(n ast.Node) bool {
		if sel, isSel := n.(*ast.SelectorExpr); isSel && !sel.Sel.IsExported() {
			no(sel.Sel)
		}
		return true
	})
	return ok
}
