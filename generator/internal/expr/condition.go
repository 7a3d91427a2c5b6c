package expr

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// Condition is like Boolean, and an operand of && or || that cannot be evaluated
// counts as false: #err != nil || #resp.Cached is true where the error is not
// nil and resp is. Only what has to be evaluated into a variable first stays in
// Guards; the condition is false if one of them holds.
func (s *Scope) Condition(option string, v directive.Value, m *Signature) *Expr {
	e := s.typed(option, v, m)
	if e == nil || !s.oneValue(e) || s.boolean(e) == nil {
		return nil
	}
	c := &condition{Expr: e, tests: e.nilTests(), either: hasEither(e.Node)}
	e.Node = c.operand(e.Node, map[string]bool{})
	if c.unwritable != nil {
		e.notAllowed(c.unwritable, "beside ||, using the result of "+e.textOf(c.unwritable)+", which may be nil,", s.reporter(option))
		return nil
	}
	if !s.reachable(e) {
		return nil
	}
	return e
}

// A condition is an expression whose operands of && and || get guards of their
// own.
type condition struct {
	*Expr
	tests      []nilTest
	either     bool     // it has a ||
	unwritable ast.Expr // what would need a variable beside a ||
}

// operand returns an operand with its guards before it. Those that hold already
// are left out, and the others added to them.
func (c *condition) operand(n ast.Expr, held map[string]bool) ast.Expr {
	switch n := n.(type) {
	case *ast.ParenExpr:
		n.X = c.operand(n.X, maps.Clone(held))
		return n
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LOR:
			n.X, n.Y = c.operand(n.X, maps.Clone(held)), c.operand(n.Y, maps.Clone(held))
			return n
		case token.LAND:
			x := c.operand(n.X, held)
			return and(x, c.operand(n.Y, held))
		}
	}
	before := c.Guards
	c.Guards = nil
	n = c.guardPart(n, c.tests)
	guards := c.Guards
	c.Guards = before
	if i := slices.IndexFunc(guards, func(g *Guard) bool { return g.Bind != nil }); i >= 0 {
		if c.either {
			c.unwritable = guards[i].Subject
		}
		c.Guards = append(c.Guards, guards...)
		return n
	}
	for _, g := range slices.Backward(guards) {
		if !held[g.Reason] {
			n = and(c.holds(g), n)
		}
	}
	for _, g := range guards {
		held[g.Reason] = true
	}
	return n
}

// holds returns the expression that a guard does not object.
func (c *condition) holds(g *Guard) ast.Expr {
	x := g.Subject
	if g.Index != "" {
		return &ast.BinaryExpr{X: call("len", x), Op: token.GTR, Y: &ast.BasicLit{Kind: token.INT, Value: g.Index}}
	}
	if gotypes.IsTypeParam(c.Info.Types[g.Subject].Type) {
		x = call("any", x) // else it cannot be compared with nil
	}
	return &ast.BinaryExpr{X: x, Op: token.NEQ, Y: ast.NewIdent("nil")}
}

func call(fun string, x ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: ast.NewIdent(fun), Args: []ast.Expr{x}}
}

// and returns x && y, where y may be such an expression itself.
func and(x, y ast.Expr) ast.Expr {
	if b, ok := y.(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return &ast.BinaryExpr{X: and(x, b.X), Op: token.LAND, Y: b.Y}
	}
	return &ast.BinaryExpr{X: x, Op: token.LAND, Y: y}
}

// hasEither reports whether an operand of the expression is one of ||.
func hasEither(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return hasEither(n.X)
	case *ast.BinaryExpr:
		return n.Op == token.LOR || n.Op == token.LAND && (hasEither(n.X) || hasEither(n.Y))
	}
	return false
}
