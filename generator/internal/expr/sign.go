package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// MayBeNegative reports whether an integer expression may have a negative value. Sums
// and products of what is not negative are taken not to overflow.
func (e *Expr) MayBeNegative() bool { return e.mayBeNegative(e.Node) }

func (e *Expr) mayBeNegative(n ast.Expr) bool {
	tv := e.Info.Types[n]
	if tv.Value != nil {
		v := constant.ToInt(tv.Value)
		return v.Kind() == constant.Int && constant.Sign(v) < 0
	}
	if b, ok := tv.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsUnsigned != 0 {
		return false
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return e.mayBeNegative(n.X)
	case *ast.BinaryExpr:
		return n.Op != token.ADD && n.Op != token.MUL || e.mayBeNegative(n.X) || e.mayBeNegative(n.Y)
	case *ast.CallExpr:
		switch f := e.Info.Types[n.Fun]; {
		case f.IsBuiltin():
			name, _ := ast.Unparen(n.Fun).(*ast.Ident)
			return name == nil || name.Name != "len" && name.Name != "cap"
		case f.IsType(): // a smaller type may lose bits
			_, small := map[types.BasicKind]bool{types.Int8: true, types.Int16: true, types.Int32: true}[kindOf(f.Type)]
			return small || isWide(e.Info.Types[n.Args[0]].Type) || e.mayBeNegative(n.Args[0])
		}
	}
	return true
}

func kindOf(t types.Type) types.BasicKind {
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Kind()
	}
	return types.Invalid
}

// isWide reports whether an unsigned type has values that an int64 has not.
func isWide(t types.Type) bool {
	switch kindOf(t) {
	case types.Uint, types.Uint64, types.Uintptr:
		return true
	}
	return false
}
