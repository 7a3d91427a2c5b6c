package expr

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/rategen/rategen/generator/internal/diag"
)

// EachOutside calls visit for every identifier that an expression takes from
// outside of itself, parameters excepted.
func (e *Expr) EachOutside(visit func(*ast.Ident, types.Object)) {
	walk := func(n ast.Node) bool { return e.visitIdent(n, visit) }
	ast.Inspect(e.Node, walk)
	for _, g := range e.Guards {
		ast.Inspect(g.Subject, walk)
	}
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

// refuseUnexported reports names in an expression that the other package
// cannot use. A constant is written as a number.
func refuseUnexported(e *Expr, home *types.Package, report diag.Func) bool {
	ok := true
	no := func(id *ast.Ident, at token.Pos) {
		report(e.at(at), "%s is unexported, and the wrapper is to be in package %s: export it, or leave out -out", id.Name, home.Path()).Over(id.Name)
		ok = false
	}
	if e.Const != nil && e.Option != "key" {
		return true
	}
	e.EachOutside(func(id *ast.Ident, obj types.Object) {
		if IsPackageLevel(obj) && obj.Pkg() != home && !obj.Exported() {
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
	ast.Inspect(e.Node, see)
	for _, g := range e.Guards {
		ast.Inspect(g.Subject, see)
	}
	return ok
}
