package expr

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/gotypes"
)

// Lower returns an expression in steps, where some facts hold.
func (e *Expr) Lower(held Facts) *Lowered {
	l := newLowerer(e)
	held = held.clone()
	return &Lowered{e, l.whole(&held)}
}

// whole lowers all of an expression.
func (l *lowerer) whole(held *Facts) []Step {
	steps := l.value(l.Node, held)
	if l.NotNil {
		steps = append(steps, l.notNil(l.Node, held)...)
	}
	return steps
}

// A lowerer finds the steps of one expression.
type lowerer struct {
	*Expr
	bound map[ast.Expr]int // the nodes that steps put into variables
}

func newLowerer(e *Expr) *lowerer { return &lowerer{e, map[ast.Expr]int{}} }

// value returns the steps before a node can be evaluated, and adds what holds
// after them to the facts.
func (l *lowerer) value(n ast.Expr, held *Facts) []Step {
	if tv := l.Info.Types[n]; tv.Value != nil || tv.IsType() {
		return nil // not evaluated
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return l.value(n.X, held)
	case *ast.SelectorExpr:
		return l.selector(n, held)
	case *ast.StarExpr:
		return append(l.value(n.X, held), l.notNil(n.X, held)...)
	case *ast.UnaryExpr:
		return l.value(n.X, held)
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			return l.short(n, held)
		}
		return l.list(held, n.X, n.Y)
	case *ast.IndexExpr:
		if !l.Info.Types[n.X].IsValue() || gotypes.Is[*types.Signature](l.Info.Types[n.X].Type) {
			return nil // an instantiation
		}
		return append(l.list(held, n.X, n.Index), l.index(n, held)...)
	case *ast.CallExpr:
		return l.call(n, held)
	case *ast.CompositeLit:
		var elements []ast.Expr
		for _, x := range n.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				if l.Info.Types[kv.Key].IsValue() {
					elements = append(elements, kv.Key)
				}
				x = kv.Value
			}
			elements = append(elements, x)
		}
		return l.list(held, elements...)
	}
	return nil
}

// list lowers operands that are evaluated one after the other. If the steps of
// one call something, the calls of those before it must have been made.
func (l *lowerer) list(held *Facts, operands ...ast.Expr) []Step {
	steps := make([][]Step, len(operands))
	for i, x := range operands {
		steps[i] = l.value(x, held)
	}
	calls := false
	for i := range slices.Backward(operands) {
		if calls {
			steps[i] = append(steps[i], l.bindCalls(operands[i])...)
		}
		calls = calls || l.callsIn(steps[i])
	}
	return slices.Concat(steps...)
}

// short lowers && and ||. What has to be tested on the right is tested on the
// condition that the left does not decide.
func (l *lowerer) short(n *ast.BinaryExpr, held *Facts) []Step {
	steps := l.value(n.X, held)
	goesOn := n.Op == token.LAND
	inside := held.clone()
	l.assume(&inside, n.X, goesOn)
	right := l.value(n.Y, &inside)
	if len(right) == 0 {
		return steps
	}
	if !OnlyTests(right) {
		l.bound[n] = len(l.bound) + 1
		return append(steps, &Short{n, right})
	}
	// The left operand is written twice, so its calls are bound first.
	steps = append(steps, l.bindCalls(n.X)...)
	for _, s := range right {
		t := s.(*Test)
		t.Path = append([]Branch{{n.X, goesOn}}, t.Path...)
		steps = append(steps, t)
	}
	return steps
}

func (l *lowerer) call(n *ast.CallExpr, held *Facts) []Step {
	fun := l.Info.Types[n.Fun]
	if fun.IsBuiltin() {
		if _, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
			return nil // of package unsafe: not evaluated
		}
		return l.list(held, slices.DeleteFunc(slices.Clone(n.Args), func(x ast.Expr) bool { return l.Info.Types[x].IsType() })...)
	}
	if fun.IsType() {
		return l.list(held, n.Args...)
	}
	steps := l.list(held, append([]ast.Expr{n.Fun}, n.Args...)...)
	if l.isFuncValue(n.Fun) {
		// Tested at once: the arguments of a call that is not made do not matter.
		return append(steps, l.notNil(n.Fun, held)...)
	}
	if recv := l.receiverArgument(n); recv != nil {
		return append(steps, l.notNil(recv, held)...)
	}
	return steps
}

// receiverArgument returns the first argument of the call of a method
// expression if it is the receiver and must not be nil.
func (l *lowerer) receiverArgument(n *ast.CallExpr) ast.Expr {
	fun, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 {
		return nil
	}
	if sel := l.Info.Selections[fun]; sel == nil || sel.Kind() != types.MethodExpr || !isNilable(sel.Recv()) || isTuple(l.Info.Types[n.Args[0]].Type) {
		return nil
	}
	return n.Args[0]
}
