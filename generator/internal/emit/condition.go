package emit

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/expr"
)

// A condition is a boolean expression of the generated code. The zero one is
// always true, and left out.
type condition struct {
	op    token.Token // LAND or LOR of parts, or ILLEGAL
	parts []condition
	text  string      // if there are no parts
	opOf  token.Token // the operator of text, if it is && or ||
	not   string      // the opposite of text
}

func (c condition) isZero() bool { return len(c.parts) == 0 && c.text == "" }

func plain(text string) condition { return condition{text: text, not: "!" + text} }

// allOf returns the condition that all of some conditions hold.
func allOf(all ...condition) condition { return join(token.LAND, all) }

// anyOf returns the condition that one of some conditions holds.
func anyOf(all ...condition) condition { return join(token.LOR, all) }

func join(op token.Token, all []condition) condition {
	var parts []condition
	for _, c := range all {
		if c.isZero() {
			continue
		}
		if c.op == op {
			parts = append(parts, c.parts...)
		} else {
			parts = append(parts, c)
		}
	}
	switch len(parts) {
	case 0:
		return condition{}
	case 1:
		return parts[0]
	}
	return condition{op: op, parts: parts}
}

// negated returns the opposite of a condition.
func (c condition) negated() condition {
	if len(c.parts) == 0 {
		return condition{text: c.not, not: c.text}
	}
	var parts []condition
	for _, p := range c.parts {
		parts = append(parts, p.negated())
	}
	return condition{op: token.LAND + token.LOR - c.op, parts: parts}
}

func (c condition) String() string { return c.operandOf(token.ILLEGAL) }

// operandOf writes a condition as an operand.
func (c condition) operandOf(op token.Token) string {
	text, own := c.text, c.opOf
	if len(c.parts) > 0 {
		own = c.op
		var parts []string
		for _, p := range c.parts {
			parts = append(parts, p.operandOf(c.op))
		}
		text = strings.Join(parts, " "+c.op.String()+" ")
	}
	if op == token.LAND && own == token.LOR {
		return "(" + text + ")"
	}
	return text
}

// conditionOf returns the condition that an expression, or a part of it, is.
func (a *admission) conditionOf(x *expr.Expr, n ast.Expr) condition {
	c := condition{text: a.headerText(x, n, a.names)}
	t := x.Info.Types[n].Type
	if t == nil { // operands that were not joined like this
		t = x.Type
	}
	if _, isBasic := types.Unalias(t).(*types.Basic); !isBasic {
		return plain("bool(" + c.text + ")")
	}
	if a.names.bind(n) != "" {
		return plain(c.text)
	}
	c.not = "!" + c.text
	switch n := n.(type) {
	case *ast.BinaryExpr:
		c.not = "!(" + c.text + ")"
		if n.Op == token.LAND || n.Op == token.LOR {
			c.opOf = n.Op
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.not = strings.TrimPrefix(c.text, "!")
		}
	}
	return c
}

// branch returns the condition that a [expr.Branch] is taken.
func (a *admission) branch(x *expr.Expr, n ast.Expr, is bool) condition {
	switch n := ast.Unparen(n).(type) {
	case *ast.BinaryExpr:
		if a.names.bind(n) != "" {
			break
		}
		switch n.Op {
		case token.LAND, token.LOR:
			c := join(n.Op, []condition{a.branch(x, n.X, true), a.branch(x, n.Y, true)})
			if !is {
				c = c.negated()
			}
			return c
		case token.EQL, token.NEQ:
			c := a.conditionOf(x, n)
			other := *n
			other.Op = token.EQL + token.NEQ - n.Op
			c.not = a.headerText(x, &other, a.names)
			if !is {
				c = c.negated()
			}
			return c
		}
	}
	c := a.conditionOf(x, n)
	if !is {
		c = c.negated()
	}
	return c
}

// fails returns the condition that a test is not passed.
func (a *admission) fails(x *expr.Expr, t *expr.Test) condition {
	var path []condition
	for _, b := range t.Path {
		path = append(path, a.branch(x, b.Cond, b.Is))
	}
	subject := a.headerText(x, t.Subject, a.names)
	if t.Index != "" {
		subject = "len(" + subject + ")"
		return allOf(append(path, condition{text: subject + " <= " + t.Index, not: subject + " > " + t.Index})...)
	}
	if expr.NeedsAny(t.Type) {
		subject = "any(" + subject + ")"
	}
	return allOf(append(path, condition{text: subject + " == nil", not: subject + " != nil"})...)
}

// anyFails returns the condition that one of some tests is not passed.
func (a *admission) anyFails(x *expr.Expr, tests []*expr.Test) condition {
	var all []condition
	for _, t := range tests {
		all = append(all, a.fails(x, t))
	}
	return anyOf(all...)
}

// isNested reports whether headers hold statements, and not conditions alone.
func isNested(headers []header) bool {
	return slices.ContainsFunc(headers, func(h header) bool { return len(h.before) > 0 || len(h.init) > 0 })
}
