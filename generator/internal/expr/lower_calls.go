package expr

import (
	"go/ast"
	"go/token"
	"slices"
)

// callsIn reports whether steps call something.
func (l *lowerer) callsIn(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		switch s := s.(type) {
		case *Bind:
			return l.calls(s.Node, true)
		case *Short:
			return l.calls(s.Node, true)
		}
		return false
	})
}

// calls reports whether evaluating a node calls something. Unless all is set,
// what is in a variable does not count.
func (l *lowerer) calls(n ast.Expr, all bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if ok && (l.Info.Types[x].Value != nil || l.Info.Types[x].IsType() || !all && l.bound[x] > 0) {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok && l.isRealCall(call) {
			found = true
		}
		return !found
	})
	return found
}

// isRealCall reports whether a call expression calls a function.
func (l *lowerer) isRealCall(n *ast.CallExpr) bool {
	tv := l.Info.Types[n.Fun]
	return tv.IsValue() && !tv.IsBuiltin()
}

// bindCalls returns the steps that make the calls in a node.
func (l *lowerer) bindCalls(n ast.Expr) []Step {
	if n == nil || !l.calls(n, false) || l.bound[n] > 0 {
		return nil
	}
	switch x := n.(type) {
	case *ast.ParenExpr:
		return l.bindCalls(x.X)
	case *ast.SelectorExpr:
		return l.bindCalls(x.X)
	case *ast.StarExpr:
		return l.bindCalls(x.X)
	case *ast.UnaryExpr:
		return l.bindCalls(x.X)
	case *ast.IndexExpr:
		return append(l.bindCalls(x.X), l.bindCalls(x.Index)...)
	case *ast.BinaryExpr:
		if x.Op != token.LAND && x.Op != token.LOR {
			return append(l.bindCalls(x.X), l.bindCalls(x.Y)...)
		}
	case *ast.CallExpr:
		if !l.isRealCall(x) {
			return l.bindAll(x.Args)
		}
	case *ast.CompositeLit:
		return l.bindAll(x.Elts)
	case *ast.KeyValueExpr:
		return append(l.bindCalls(x.Key), l.bindCalls(x.Value)...)
	}
	return []Step{l.bind(n)}
}

// bindAll returns the steps that make the calls in some nodes.
func (l *lowerer) bindAll(nodes []ast.Expr) (steps []Step) {
	for _, n := range nodes {
		steps = append(steps, l.bindCalls(n)...)
	}
	return steps
}

func (l *lowerer) bind(n ast.Expr) Step {
	l.bound[n] = len(l.bound) + 1
	return &Bind{n}
}
