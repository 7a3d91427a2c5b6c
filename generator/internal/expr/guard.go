package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/astutil"
)

// A Guard is a condition under which an expression would panic: a nil pointer
// or interface on its way, or an index out of range. Guards stand in the order
// of evaluation.
type Guard struct {
	Subject ast.Expr // what must not be nil, or is indexed
	Index   string   // the constant index, or "" for a nil check
	Reason  string   // for the log; names the expression, never a value
	// bind is not nil if subject calls something. It is then evaluated once,
	// into this variable, which the expression uses.
	Bind *ast.Ident
}

// A nilTest is a comparison with nil that the author of an expression wrote
// before a && or ||; it protects what follows.
type nilTest struct {
	subject string
	where   ast.Expr
}

// findGuards collects the guards of an expression, and rewrites it to use
// their variables.
func (e *Expr) findGuards() { e.Node = e.guardPart(e.Node, e.nilTests()) }

// guardPart is findGuards for a part of the expression.
func (e *Expr) guardPart(part ast.Expr, tests []nilTest) ast.Expr {
	return astutil.Apply(part, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.SelectorExpr:
			e.guardSelector(n, tests)
		case *ast.StarExpr:
			if e.Info.Types[n.X].IsValue() {
				n.X = e.guardNil(n.X, tests)
			}
		case *ast.IndexExpr:
			if x, needed := indexBound(e, n); needed {
				n.X = e.guardIndex(n, x)
			} else if t := e.Info.Types[n.X]; t.IsValue() && isPointer(t.Type) {
				n.X = e.guardNil(n.X, tests)
			}
		case *ast.CallExpr:
			if e.isFuncValue(n.Fun) {
				n.Fun = e.guardNil(n.Fun, tests)
			}
		}
		return true
	}).(ast.Expr)
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// isNilable reports whether using a member of t's value fails if it is nil.
func isNilable(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return mayBeInterface(p)
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface:
		return true
	}
	return false
}

// mayBeInterface reports whether a type parameter may stand for an interface,
// whose value may be nil. One whose constraint lists types may not.
func mayBeInterface(p *types.TypeParam) bool {
	iface, ok := p.Constraint().Underlying().(*types.Interface)
	return ok && iface.IsMethodSet()
}

// guardSelector guards the operand of a selector and the embedded fields on
// the way to what it selects.
func (e *Expr) guardSelector(n *ast.SelectorExpr, tests []nilTest) {
	sel := e.Info.Selections[n]
	if sel == nil || sel.Kind() == types.MethodExpr {
		return
	}
	t := e.Info.Types[n.X].Type
	embedded := sel.Index()[:len(sel.Index())-1]
	// A method with a pointer receiver may accept nil, as the getters of
	// protocol buffers do when chained. On a parameter it is checked anyway.
	// So it is on the way to a context, where a request may be missing.
	acceptsNil := sel.Kind() == types.MethodVal && len(embedded) == 0 && isPointer(t) && hasPointerReceiver(sel) && !isPure(n.X) && e.Option != ctxOption
	if isNilable(t) && !acceptsNil {
		n.X = e.guardNil(n.X, tests)
	}
	x := n.X
	for _, i := range embedded {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		field := t.Underlying().(*types.Struct).Field(i)
		x = &ast.SelectorExpr{X: x, Sel: ast.NewIdent(field.Name())}
		if t = field.Type(); isNilable(t) {
			e.addGuard(&Guard{Subject: x, Reason: types.ExprString(x) + " is nil"})
		}
	}
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
		return e.Info.Types[f.X].IsValue() && !isInstantiation(e, f.X)
	case *ast.IndexListExpr:
		return false
	}
	return true
}

func isInstantiation(e *Expr, x ast.Expr) bool {
	_, ok := e.Info.Types[x].Type.Underlying().(*types.Signature)
	return ok
}

// guardNil guards x and returns what to write in its place. A refusal is never nil.
func (e *Expr) guardNil(x ast.Expr, tests []nilTest) ast.Expr {
	if id, ok := ast.Unparen(x).(*ast.Ident); ok && e.refusal != nil && e.Params[id] == e.refusal {
		return x
	}
	text := types.ExprString(ast.Unparen(x))
	for _, t := range tests {
		if t.subject == text && t.where.Pos() <= x.Pos() && x.End() <= t.where.End() {
			return x
		}
	}
	g := &Guard{Subject: x, Reason: text + " is nil"}
	return e.addGuard(e.bound(g))
}

func (e *Expr) guardIndex(n *ast.IndexExpr, x ast.Expr) ast.Expr {
	v := e.Info.Types[n.Index].Value
	g := &Guard{Subject: x, Index: constant.ToInt(v).ExactString(), Reason: types.ExprString(x) + " has no index " + v.ExactString()}
	return e.addGuard(e.bound(g))
}

// bound gives a guard a variable if its subject must not be evaluated twice.
func (e *Expr) bound(g *Guard) *Guard {
	if !isPure(g.Subject) {
		g.Bind = &ast.Ident{NamePos: g.Subject.Pos(), Name: types.ExprString(g.Subject)}
		e.Info.Types[g.Bind] = e.Info.Types[g.Subject]
	}
	return g
}

// addGuard adds a guard unless an equal one is there, and returns what to
// write in place of its subject.
func (e *Expr) addGuard(g *Guard) ast.Expr {
	for _, before := range e.Guards {
		if before.Reason == g.Reason && before.Bind == nil && g.Bind == nil {
			return g.Subject
		}
	}
	e.Guards = append(e.Guards, g)
	if g.Bind != nil {
		return g.Bind
	}
	return g.Subject
}

// isPure reports whether evaluating x twice gives the same without effects.
func isPure(x ast.Expr) bool {
	pure := true
	ast.Inspect(x, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.CompositeLit, *ast.IndexExpr, *ast.UnaryExpr, *ast.BinaryExpr:
			pure = false
		}
		return pure
	})
	return pure
}

// nilTests finds the comparisons with nil on the left of && and ||.
func (e *Expr) nilTests() []nilTest {
	var tests []nilTest
	ast.Inspect(e.Node, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		switch b.Op {
		case token.LAND:
			e.comparisons(b.X, token.LAND, token.NEQ, func(subject string) { tests = append(tests, nilTest{subject, b.Y}) })
		case token.LOR:
			e.comparisons(b.X, token.LOR, token.EQL, func(subject string) { tests = append(tests, nilTest{subject, b.Y}) })
		}
		return true
	})
	return tests
}

// comparisons calls found for every operand that x, a chain of join, compares
// with nil by op.
func (e *Expr) comparisons(x ast.Expr, join, op token.Token, found func(string)) {
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	switch {
	case !ok:
	case b.Op == join:
		e.comparisons(b.X, join, op, found)
		e.comparisons(b.Y, join, op, found)
	case b.Op == op && e.Info.Types[b.Y].IsNil():
		found(types.ExprString(ast.Unparen(b.X)))
	case b.Op == op && e.Info.Types[b.X].IsNil():
		found(types.ExprString(ast.Unparen(b.Y)))
	}
}
