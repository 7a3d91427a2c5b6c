package expr

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
)

// writeFunction is the remedy for an expression that has effects, blocks, or may
// panic in a way that no guard can prevent. A function can be read and tested.
const writeFunction = "write a function and call it"

func (e *Expr) notAllowed(n ast.Node, what string, report diag.Func) {
	report(e.at(n.Pos()), "%s is not allowed in a directive: %s", what, writeFunction).Over(e.textOf(n))
}

// refuse reports syntax that a directive's expression must not have.
func refuse(e *Expr, report diag.Func) bool {
	ok := true
	no := func(n ast.Node, what string) {
		e.notAllowed(n, what, report)
		ok = false
	}
	ast.Inspect(e.Node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			no(n, "a function literal")
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				no(n, "a channel receive")
			}
		case *ast.TypeAssertExpr:
			no(n, "a type assertion")
		case *ast.SliceExpr:
			no(n, "a slice expression, which may panic,")
		}
		return ok
	})
	return ok
}

// refuseTyped reports what only the types of an expression tell.
func refuseTyped(e *Expr, report diag.Func) bool {
	ok := true
	no := func(n ast.Node, what string) {
		e.notAllowed(n, what, report)
		ok = false
	}
	ast.Inspect(e.Node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			x, y := e.Info.Types[n.X], e.Info.Types[n.Y]
			switch {
			case (n.Op == token.EQL || n.Op == token.NEQ) && !x.IsNil() && !y.IsNil() && mayNotCompare(x.Type) && mayNotCompare(y.Type):
				if IsError(x.Type) || IsError(y.Type) {
					report(e.at(n.Pos()), "comparing errors may panic and misses wrapped ones: write errors.Is(%s, %s)", types.ExprString(n.X), types.ExprString(n.Y)).Over(e.textOf(n))
					ok = false
					break
				}
				no(n, "comparing "+types.ExprString(n.X)+" with "+types.ExprString(n.Y)+", which may hold values that cannot be compared,")
			case y.Value != nil || y.Type == nil:
			case (n.Op == token.QUO || n.Op == token.REM) && isInteger(y.Type):
				no(n.Y, "a division by "+types.ExprString(n.Y)+", which may be 0,")
			case (n.Op == token.SHL || n.Op == token.SHR) && !isUnsigned(y.Type):
				no(n.Y, "a shift by "+types.ExprString(n.Y)+", which may be negative,")
			}
		case *ast.IndexExpr:
			if _, needed := indexBound(e, n); needed && e.Info.Types[n.Index].Value == nil {
				no(n.Index, "the index "+types.ExprString(n.Index)+", which may be out of range,")
			}
			if x := e.Info.Types[n.X]; x.IsValue() && isMap(x.Type) && mayNotCompare(e.Info.Types[n.Index].Type) {
				no(n.Index, "the map key "+types.ExprString(n.Index)+", which may hold a value that cannot be compared,")
			}
		case *ast.CallExpr:
			if len(n.Args) == 1 && e.Info.Types[n.Fun].IsType() && isToArray(e.Info.Types[n.Fun].Type, e.Info.Types[n.Args[0]].Type) {
				no(n, "the conversion "+types.ExprString(n)+", which may panic,")
			}
			id, isIdent := ast.Unparen(n.Fun).(*ast.Ident)
			if b, isBuiltin := e.Info.Uses[id].(*types.Builtin); isIdent && isBuiltin &&
				!slices.Contains([]string{"len", "cap", "min", "max", "complex", "real", "imag", "new"}, b.Name()) {
				no(n, "the builtin "+b.Name())
			}
		}
		return true
	})
	return ok
}

// indexBound returns the operand whose length bounds an index, and whether the
// index can be out of range at all.
func indexBound(e *Expr, n *ast.IndexExpr) (ast.Expr, bool) {
	tv := e.Info.Types[n.X]
	if !tv.IsValue() {
		return nil, false // an instantiation
	}
	switch t := tv.Type.Underlying().(type) {
	case *types.Slice:
		return n.X, true
	case *types.Basic:
		return n.X, t.Info()&types.IsString != 0 && tv.Value == nil
	case *types.Array:
		return n.X, e.Info.Types[n.Index].Value == nil
	case *types.Pointer:
		return n.X, e.Info.Types[n.Index].Value == nil
	case *types.Interface: // a type parameter
		return n.X, true
	}
	return nil, false
}

// mayNotCompare reports whether comparing two values of a type may panic: an
// interface may hold a slice, say.
func mayNotCompare(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return mayBeInterface(p)
	}
	switch t := t.Underlying().(type) {
	case *types.Interface:
		return true
	case *types.Array:
		return mayNotCompare(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if mayNotCompare(f.Type()) {
				return true
			}
		}
	}
	return false
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// isToArray reports whether a conversion makes an array, or a pointer to one,
// of a slice that may be too short.
func isToArray(to, from types.Type) bool {
	if to == nil || from == nil {
		return false
	}
	if p, ok := to.Underlying().(*types.Pointer); ok {
		to = p.Elem()
	}
	_, isArray := to.Underlying().(*types.Array)
	_, isSlice := from.Underlying().(*types.Slice)
	return isArray && isSlice
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}
