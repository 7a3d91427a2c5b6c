package expr

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
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
		if !l.Info.Types[n.X].IsValue() || isFunc(l.Info.Types[n.X].Type) {
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
			var steps []Step
			for _, arg := range x.Args {
				steps = append(steps, l.bindCalls(arg)...)
			}
			return steps
		}
	case *ast.CompositeLit:
		var steps []Step
		for _, elt := range x.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				steps = append(steps, l.bindCalls(kv.Key)...)
				elt = kv.Value
			}
			steps = append(steps, l.bindCalls(elt)...)
		}
		return steps
	}
	return []Step{l.bind(n)}
}

func (l *lowerer) bind(n ast.Expr) Step {
	l.bound[n] = len(l.bound) + 1
	return &Bind{n}
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
	// What is on the left is written twice.
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

// index returns the test that an index is in range.
func (l *lowerer) index(n *ast.IndexExpr, held *Facts) []Step {
	if x, needed := indexBound(l.Expr, n); needed {
		v := l.Info.Types[n.Index].Value
		text := constant.ToInt(v).ExactString()
		return l.test(x, held, Test{Index: text, Reason: types.ExprString(x) + " has no index " + v.ExactString()})
	}
	if isOrAll(l.Info.Types[n.X].Type, isPointer) {
		return l.notNil(n.X, held)
	}
	return nil
}

// selector returns the tests of the operand of a selector and of the embedded
// fields on the way to what it selects.
func (l *lowerer) selector(n *ast.SelectorExpr, held *Facts) []Step {
	sel := l.Info.Selections[n]
	if sel == nil || sel.Kind() == types.MethodExpr {
		return nil
	}
	steps := l.value(n.X, held)
	t := l.Info.Types[n.X].Type
	embedded := sel.Index()[:len(sel.Index())-1]
	if isNilable(t) && !l.acceptsNil(n, sel) {
		steps = append(steps, l.notNil(n.X, held)...)
	}
	x := n.X
	for _, i := range embedded {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		field := t.Underlying().(*types.Struct).Field(i)
		x = &ast.SelectorExpr{X: x, Sel: ast.NewIdent(field.Name())}
		if t = field.Type(); isNilable(t) {
			steps = append(steps, l.test(x, held, Test{Type: t, Embedded: field, Reason: types.ExprString(x) + " is nil"})...)
		}
	}
	return steps
}

// acceptsNil reports whether a method may be called on what is nil. Getters of
// protocol buffers are made for that: #in.GetUser().GetName(). On a parameter
// they are not, nor on the way to a context.
func (l *lowerer) acceptsNil(n *ast.SelectorExpr, sel *types.Selection) bool {
	return sel.Kind() == types.MethodVal && len(sel.Index()) == 1 && isPointer(sel.Recv()) && hasPointerReceiver(sel) &&
		strings.HasPrefix(sel.Obj().Name(), "Get") && l.key(n.X) == "" && l.Option != ctxOption
}

func hasPointerReceiver(sel *types.Selection) bool {
	recv := sel.Obj().(*types.Func).Signature().Recv()
	return recv != nil && isPointer(recv.Type())
}

// isFuncValue reports whether a call's function is a variable, which may be
// nil.
func (e *Expr) isFuncValue(fun ast.Expr) bool {
	tv := e.Info.Types[fun]
	if !tv.IsValue() || tv.IsBuiltin() {
		return false
	}
	switch f := ast.Unparen(fun).(type) {
	case *ast.Ident:
		_, isVar := e.Info.Uses[f].(*types.Var)
		return isVar
	case *ast.SelectorExpr:
		if sel := e.Info.Selections[f]; sel != nil {
			return sel.Kind() == types.FieldVal
		}
		_, isVar := e.Info.Uses[f.Sel].(*types.Var)
		return isVar
	case *ast.IndexExpr:
		return e.Info.Types[f.X].IsValue() && !isFunc(e.Info.Types[f.X].Type)
	case *ast.IndexListExpr:
		return false
	}
	return true
}

// notNil returns the test that a node is not nil. A refusal never is, nor what
// is made on the spot.
func (l *lowerer) notNil(x ast.Expr, held *Facts) []Step {
	switch n := ast.Unparen(x).(type) {
	case *ast.Ident:
		if l.refusal != nil && l.Params[n] == l.refusal {
			return nil
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return nil
		}
	}
	return l.test(x, held, Test{Reason: types.ExprString(ast.Unparen(x)) + " is nil"})
}

// test returns the steps of a test, unless it is passed for certain. What must
// not be evaluated twice is put into a variable first.
func (l *lowerer) test(x ast.Expr, held *Facts, t Test) []Step {
	var steps []Step
	if l.key(x) == "" {
		steps = append(steps, l.bind(x))
	}
	key := l.key(x)
	if held.has(key, &t) {
		return nil
	}
	t.Subject = x
	if t.Type == nil {
		t.Type = l.Info.Types[ast.Unparen(x)].Type
	}
	held.know(key, &t)
	return append(steps, &t)
}

// key returns a text that two nodes share only if they have the same value, or
// "" for a node that must not be evaluated twice.
func (l *lowerer) key(n ast.Expr) string {
	if i := l.bound[n]; i > 0 {
		return fmt.Sprint("$", i)
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return l.key(n.X)
	case *ast.Ident:
		return n.Name
	case *ast.StarExpr:
		if x := l.key(n.X); x != "" {
			return "*" + x
		}
	case *ast.SelectorExpr:
		if x := l.key(n.X); x != "" {
			return "(" + x + ")." + n.Sel.Name
		}
	}
	return ""
}
