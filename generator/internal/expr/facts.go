package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"maps"
	"strings"
)

// Facts are what is known where a part of an expression is evaluated: operands
// that are not nil, and how long others are at least.
type Facts struct {
	notNil map[string]bool
	length map[string]int64
}

func (f Facts) clone() Facts { return Facts{maps.Clone(f.notNil), maps.Clone(f.length)} }

// ofParameters returns the facts that hold in other expressions, too: not those
// of this one's variables.
func (f Facts) ofParameters() Facts {
	f = f.clone()
	maps.DeleteFunc(f.notNil, func(key string, _ bool) bool { return strings.Contains(key, "$") })
	maps.DeleteFunc(f.length, func(key string, _ int64) bool { return strings.Contains(key, "$") })
	return f
}

// addTest adds that a test has been passed.
func (f *Facts) addTest(key string, t *Test) {
	if t.Index == "" {
		f.setNotNil(key)
		return
	}
	if n, ok := constant.Int64Val(constant.MakeFromLiteral(t.Index, token.INT, 0)); ok {
		f.setLength(key, n+1)
	}
}

// implies reports whether a test is passed for certain.
func (f Facts) implies(key string, t *Test) bool {
	if t.Index == "" {
		return f.notNil[key]
	}
	n, ok := constant.Int64Val(constant.MakeFromLiteral(t.Index, token.INT, 0))
	return ok && f.length[key] > n
}

func (f *Facts) setNotNil(key string) {
	if key == "" {
		return
	}
	if f.notNil == nil {
		f.notNil = map[string]bool{}
	}
	f.notNil[key] = true
}

func (f *Facts) setLength(key string, n int64) {
	if key == "" {
		return
	}
	if f.length == nil {
		f.length = map[string]int64{}
	}
	f.length[key] = max(f.length[key], n)
}

// assume adds what holds where a condition has been evaluated and is true, or
// false.
func (l *lowerer) assume(f *Facts, cond ast.Expr, is bool) {
	switch n := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			l.assume(f, n.X, !is)
		}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LAND:
			if is {
				l.assume(f, n.X, true)
				l.assume(f, n.Y, true)
			}
		case token.LOR:
			if !is {
				l.assume(f, n.X, false)
				l.assume(f, n.Y, false)
			}
		default:
			l.assumeComparison(f, n, is)
		}
	}
}

var opposite = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
}

var mirrored = map[token.Token]token.Token{
	token.EQL: token.EQL, token.NEQ: token.NEQ, token.LSS: token.GTR, token.GTR: token.LSS, token.LEQ: token.GEQ, token.GEQ: token.LEQ,
}

// assumeComparison adds what a comparison with nil, or of a length with a
// constant, tells.
func (l *lowerer) assumeComparison(f *Facts, n *ast.BinaryExpr, is bool) {
	op, x, y := n.Op, n.X, n.Y
	if opposite[op] == 0 {
		return
	}
	if !is {
		op = opposite[op]
	}
	if tv := l.Info.Types[x]; tv.IsNil() || tv.Value != nil {
		op, x, y = mirrored[op], y, x
	}
	if l.Info.Types[y].IsNil() {
		if op == token.NEQ {
			f.setNotNil(l.key(x))
		}
		return
	}
	s := l.lengthOf(x)
	v := l.Info.Types[y].Value
	if s == nil || v == nil {
		return
	}
	c, exact := constant.Int64Val(constant.ToInt(v))
	switch {
	case !exact:
	case op == token.GTR:
		f.setLength(l.key(s), c+1)
	case op == token.GEQ || op == token.EQL:
		f.setLength(l.key(s), c)
	case op == token.NEQ && c == 0:
		f.setLength(l.key(s), 1)
	}
}

// lengthOf returns the operand whose length an expression is, or nil: s for
// len(s).
func (l *lowerer) lengthOf(x ast.Expr) ast.Expr {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	if l.builtin(call) != "len" {
		return nil
	}
	return call.Args[0]
}
