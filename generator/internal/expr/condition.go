package expr

import (
	"go/ast"
	"go/token"
	"slices"
)

// A Condition is a boolean expression cut at its && and ||.
type Condition struct {
	Op   token.Token // LAND or LOR, or ILLEGAL for an operand
	X, Y *Condition
	Node ast.Expr
	// Steps are those of an operand.
	Steps []Step
}

// Cut returns a boolean expression cut at its && and ||. With lenient, an
// operand that cannot be evaluated counts as false: #err != nil || #resp.Cached
// is true where the error is not nil and resp is. Otherwise the whole cannot be
// evaluated then. It also returns what holds where the condition is true.
func (e *Expr) Cut(lenient bool) (*Condition, Facts) {
	c := &cutter{newLowerer(e), lenient}
	var held Facts
	cut := c.cut(e.Node, held)
	c.assume(&held, cut, true)
	return cut, held.ofParameters()
}

type cutter struct {
	*lowerer
	lenient bool
}

func (c *cutter) cut(n ast.Expr, held Facts) *Condition {
	held = held.clone()
	b, ok := ast.Unparen(n).(*ast.BinaryExpr)
	if !ok || b.Op != token.LAND && b.Op != token.LOR || c.Info.Types[n].Value != nil {
		return &Condition{Node: n, Steps: c.value(n, &held)}
	}
	var operands []*Condition
	simple := true
	for _, x := range sameOp(b, b.Op) {
		o := c.cut(x, held)
		c.assume(&held, o, b.Op == token.LAND)
		operands, simple = append(operands, o), simple && o.isSimple()
	}
	if simple {
		return &Condition{Node: n}
	}
	// a && (b && c): what comes after an operand stands under its condition.
	whole := operands[len(operands)-1]
	for _, o := range slices.Backward(operands[:len(operands)-1]) {
		node := &ast.BinaryExpr{X: o.Node, Op: b.Op, Y: whole.Node}
		if o.isSimple() && whole.isSimple() {
			whole = &Condition{Node: node}
		} else {
			whole = &Condition{Op: b.Op, X: o, Y: whole, Node: node}
		}
	}
	return whole
}

// isSimple reports whether a condition can be evaluated as it is.
func (c *Condition) isSimple() bool { return c.Op == token.ILLEGAL && len(c.Steps) == 0 }

// assume adds what holds where a condition is true, or false.
func (c *cutter) assume(f *Facts, cond *Condition, is bool) {
	if first := cond.first(); !c.lenient || is && cond == first || first.CannotFail() {
		for _, s := range first.Steps {
			if t, ok := s.(*Test); ok && len(t.Path) == 0 {
				f.addTest(c.key(t.Subject), t)
			}
		}
	}
	switch {
	case cond.Op == token.LAND && is, cond.Op == token.LOR && !is:
		c.assume(f, cond.X, is)
		c.assume(f, cond.Y, is)
	case cond.Op != token.ILLEGAL:
	case is || !c.lenient || cond.CannotFail():
		c.lowerer.assume(f, cond.Node, is)
	}
}

// first returns the operand that is evaluated in any case.
func (c *Condition) first() *Condition {
	for c.Op != token.ILLEGAL {
		c = c.X
	}
	return c
}

// Each visits the operands of a condition.
func (c *Condition) Each(visit func(*Condition)) {
	if c.Op == token.ILLEGAL {
		visit(c)
		return
	}
	c.X.Each(visit)
	c.Y.Each(visit)
}

// CannotFail reports whether a condition can always be evaluated.
func (c *Condition) CannotFail() bool {
	can := true
	c.Each(func(c *Condition) { can = can && CannotFail(c.Steps) })
	return can
}

// OnlyTests reports whether nothing needs a variable.
func (c *Condition) OnlyTests() bool {
	only := true
	c.Each(func(c *Condition) { only = only && OnlyTests(c.Steps) })
	return only
}

// InTurn returns the operands of a boolean expression in the order of evaluation.
// The Op of each is that which follows: && or || ends the evaluation if the
// operand is false, or true. Operands are whole on the left of another operator.
func (e *Expr) InTurn() []*Condition {
	var turns []*Condition
	l := newLowerer(e)
	var held Facts
	var turn func(n ast.Expr)
	turn = func(n ast.Expr) {
		b, ok := ast.Unparen(n).(*ast.BinaryExpr)
		if !ok || b.Op != token.LAND && b.Op != token.LOR || e.Info.Types[n].Value != nil {
			turns = append(turns, &Condition{Node: n, Steps: l.value(n, &held)})
			return
		}
		// The operands of a && b && c, which is (a && b) && c, are a, b and c.
		operands := sameOp(b, b.Op)
		for _, x := range operands[:len(operands)-1] {
			turns = append(turns, &Condition{Op: b.Op, Node: x, Steps: l.value(x, &held)})
			l.assume(&held, x, b.Op == token.LAND)
		}
		turn(operands[len(operands)-1])
	}
	turn(e.Node)
	return turns
}

// sameOp returns the operands that an operator joins.
func sameOp(n ast.Expr, op token.Token) []ast.Expr {
	if b, ok := ast.Unparen(n).(*ast.BinaryExpr); ok && b.Op == op {
		return append(sameOp(b.X, op), sameOp(b.Y, op)...)
	}
	return []ast.Expr{n}
}

// Calls reports whether evaluating a part of an expression calls a function.
func (e *Expr) Calls(n ast.Expr) bool { return newLowerer(e).calls(n, true) }
