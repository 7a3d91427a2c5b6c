package expr

import (
	"go/ast"
	"go/types"
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

func IsPackageLevel(obj types.Object) bool {
	return obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope()
}
