package expr

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/gotypes"
)

// index returns the test that an index is in range.
func (l *lowerer) index(n *ast.IndexExpr, held *Facts) []Step {
	if x, needed := indexBound(l.Expr, n); needed {
		v := l.Info.Types[n.Index].Value
		text := constant.ToInt(v).ExactString()
		return l.test(x, held, Test{Index: text, Reason: types.ExprString(x) + " has no index " + v.ExactString()})
	}
	if isOrAll(l.Info.Types[n.X].Type, gotypes.Is[*types.Pointer]) {
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
	return sel.Kind() == types.MethodVal && len(sel.Index()) == 1 && gotypes.Is[*types.Pointer](sel.Recv()) && hasPointerReceiver(sel) &&
		strings.HasPrefix(sel.Obj().Name(), "Get") && l.key(n.X) == "" && l.Option != ctxOption
}

func hasPointerReceiver(sel *types.Selection) bool {
	recv := sel.Obj().(*types.Func).Signature().Recv()
	return recv != nil && gotypes.Is[*types.Pointer](recv.Type())
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
		return e.Info.Types[f.X].IsValue() && !gotypes.Is[*types.Signature](e.Info.Types[f.X].Type)
	case *ast.IndexListExpr:
		return false
	}
	return true
}

// notNil returns the test that a node is not nil. A refusal or a receiver never is, nor
// what is made on the spot.
func (l *lowerer) notNil(x ast.Expr, held *Facts) []Step {
	switch n := ast.Unparen(x).(type) {
	case *ast.Ident:
		if p := l.Params[n]; p != nil && slices.Contains(l.Expr.notNil, p) {
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
	if held.implies(key, &t) {
		return nil
	}
	t.Subject = x
	if t.Type == nil {
		t.Type = l.Info.Types[ast.Unparen(x)].Type
	}
	held.addTest(key, &t)
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
