package expr

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// writeFunction is the remedy for an expression that has effects, blocks, or may
// panic in a way that no guard can prevent. A function can be read and tested.
const writeFunction = "write a function and call it"

func (e *Expr) notAllowed(n ast.Node, what string, report diag.Func) {
	report(e.at(n.Pos()), "%s is not allowed in a directive: %s", what, writeFunction).Mark(e.textOf(n))
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
					report(e.at(n.Pos()), "comparing errors may panic and misses wrapped ones: write errors.Is(%s, %s)", types.ExprString(n.X), types.ExprString(n.Y)).Mark(e.textOf(n))
					ok = false
					break
				}
				no(n, "comparing "+types.ExprString(n.X)+" with "+types.ExprString(n.Y)+", which may hold values that cannot be compared,")
			case y.Value != nil || y.Type == nil:
			case (n.Op == token.QUO || n.Op == token.REM) && gotypes.IsBasic(y.Type, types.IsInteger):
				no(n.Y, "a division by "+types.ExprString(n.Y)+", which may be 0,")
			case (n.Op == token.SHL || n.Op == token.SHR) && !gotypes.IsBasic(y.Type, types.IsUnsigned):
				no(n.Y, "a shift by "+types.ExprString(n.Y)+", which may be negative,")
			}
		case *ast.IndexExpr:
			if _, needed := indexBound(e, n); needed && e.Info.Types[n.Index].Value == nil {
				no(n.Index, "the index "+types.ExprString(n.Index)+", which may be out of range,")
			}
			if x := e.Info.Types[n.X]; x.IsValue() && isOrAll(x.Type, gotypes.Is[*types.Map]) && mayNotCompare(e.Info.Types[n.Index].Type) {
				no(n.Index, "the map key "+types.ExprString(n.Index)+", which may hold a value that cannot be compared,")
			}
		case *ast.CallExpr:
			if len(n.Args) == 1 && e.Info.Types[n.Fun].IsType() && isToArray(e.Info.Types[n.Fun].Type, e.Info.Types[n.Args[0]].Type) {
				no(n, "the conversion "+types.ExprString(n)+", which may panic,")
			}
			if b := e.builtin(n); b != "" && !slices.Contains(harmless, b) {
				no(n, "the builtin "+b)
			}
		case *ast.CompositeLit:
			if t := e.Info.Types[n].Type; gotypes.Is[*types.Map](t) && len(n.Elts) > 0 && mayNotCompare(t.Underlying().(*types.Map).Key()) {
				no(n, "a map whose keys may hold values that cannot be compared")
			}
		}
		return true
	})
	return ok
}

// harmless are the builtins that neither panic nor change anything.
var harmless = []string{"len", "cap", "min", "max", "complex", "real", "imag", "new", "Sizeof", "Alignof", "Offsetof"}

// builtin returns the name of the builtin that is called, or "".
func (e *Expr) builtin(n *ast.CallExpr) string {
	var id *ast.Ident
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr: // of package unsafe
		id = fun.Sel
	default:
		return ""
	}
	if b, ok := e.Info.Uses[id].(*types.Builtin); ok {
		return b.Name()
	}
	return ""
}

// refuseFlags reports a && or || of a type of its own that needs a variable: it
// could be one of bool only.
func refuseFlags(e *Expr, report diag.Func) bool {
	var steps []Step
	switch e.Option {
	case "when":
		for _, c := range e.InTurn() {
			steps = append(steps, c.Steps...)
		}
	case "refund":
		cut, _ := e.Cut(true)
		cut.Each(func(c *Condition) { steps = append(steps, c.Steps...) })
	default:
		steps = e.Lower(Facts{}).Steps
	}
	for _, s := range steps {
		var n ast.Expr
		switch s := s.(type) {
		case *Short:
			n = s.Node
		case *Bind:
			n = s.Node
		}
		b, ok := n.(*ast.BinaryExpr)
		if !ok || b.Op != token.LAND && b.Op != token.LOR {
			continue
		}
		if _, isBasic := types.Unalias(e.Info.Types[n].Type).(*types.Basic); !isBasic && ast.Unparen(e.Node) != n {
			report(e.at(n.Pos()), "%s is of type %s: convert its operands, as in bool(%s)", types.ExprString(n), typeName(e.Info.Types[n].Type, e.pkg), types.ExprString(b.Y)).Mark(e.textOf(n))
			return false
		}
	}
	return true
}

// indexBound returns the operand whose length bounds an index, and whether the
// index can be out of range at all.
func indexBound(e *Expr, n *ast.IndexExpr) (ast.Expr, bool) {
	tv := e.Info.Types[n.X]
	if !tv.IsValue() {
		return nil, false // an instantiation
	}
	isConst := e.Info.Types[n.Index].Value != nil
	switch t := tv.Type.Underlying().(type) {
	case *types.Slice:
		return n.X, true
	case *types.Basic:
		return n.X, t.Info()&types.IsString != 0 && tv.Value == nil
	case *types.Array, *types.Pointer:
		return n.X, !isConst
	case *types.Interface: // a type parameter
		return n.X, !isOrAll(tv.Type, gotypes.Is[*types.Map]) && !(isConst && isOrAll(tv.Type, isArray))
	}
	return nil, false
}

// isArray reports whether a type is that of arrays, or of pointers to some, whose
// constant indices are checked by the compiler.
func isArray(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return gotypes.Is[*types.Array](t)
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

// isToArray reports whether a conversion makes an array, or a pointer to one,
// of a slice that may be too short.
func isToArray(to, from types.Type) bool {
	if to == nil || from == nil {
		return false
	}
	if p, ok := to.Underlying().(*types.Pointer); ok {
		to = p.Elem()
	}
	return gotypes.Is[*types.Array](to) && gotypes.Is[*types.Slice](from)
}
