package emit

import (
	"go/token"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// refund returns the ifs within which a charge is given back. Operands of && and
// || that cannot be evaluated count as false.
func (a *admission) refund(x *expr.Expr, headers []header) []header {
	cut, _ := x.Cut(true)
	return a.whereTrue(x, cut, headers)
}

// whereTrue adds the ifs within which a condition is true.
func (a *admission) whereTrue(x *expr.Expr, c *expr.Condition, headers []header) []header {
	if c.OnlyTests() {
		return addCondition(headers, a.isTrue(x, c))
	}
	if c.Op == token.LAND {
		return a.whereTrue(x, c.Y, a.whereTrue(x, c.X, headers))
	}
	if c.Op == token.LOR {
		return a.oneTrue(x, c, headers)
	}
	if expr.HasShort(c.Steps) {
		body := a.statements(x, c.Steps, func(*expr.Test) []jen.Code { return []jen.Code{jen.Return(jen.False())} })
		body = append(body, jen.Return(jen.Op(a.conditionOf(x, c.Node).String())))
		holds := a.names.pick("refunded")
		call := jen.Id(holds).Op(":=").Func().Params().Bool().Block(body...).Call()
		return append(headers, header{before: []jen.Code{call}, condition: plain(holds)})
	}
	headers = chain(headers, a.headers(x, c.Steps))
	return addCondition(headers, a.conditionOf(x, c.Node))
}

// isTrue returns a condition that needs no variable, with the tests of its
// operands.
func (a *admission) isTrue(x *expr.Expr, c *expr.Condition) condition {
	switch c.Op {
	case token.LAND:
		return allOf(a.isTrue(x, c.X), a.isTrue(x, c.Y))
	case token.LOR:
		return anyOf(a.isTrue(x, c.X), a.isTrue(x, c.Y))
	}
	return allOf(a.anyFails(x, expr.Tests(c.Steps)).negated(), a.conditionOf(x, c.Node))
}

// oneTrue adds a variable that is true once one of the operands of || is.
func (a *admission) oneTrue(x *expr.Expr, c *expr.Condition, headers []header) []header {
	operands := []*expr.Condition{c.X}
	for c = c.Y; c.Op == token.LOR; c = c.Y {
		operands = append(operands, c.X)
	}
	operands = append(operands, c)
	holds := a.names.pick("refunded")
	found := plain(holds)
	var inline condition // what comes before is false, and these are not tried yet
	var before []jen.Code
	flush := func() {
		if len(before) == 0 && inline.isZero() {
			before = append(before, jen.Id(holds).Op(":=").False())
		} else if len(before) == 0 {
			before = append(before, jen.Id(holds).Op(":=").Op(inline.String()))
		} else if !inline.isZero() {
			before = append(before, jen.Id(holds).Op("=").Op(anyOf(found, inline).String()))
		}
		inline = condition{}
	}
	for i, o := range operands {
		if o.OnlyTests() {
			inline = anyOf(inline, a.isTrue(x, o))
			continue
		}
		flush()
		var untried []header
		if i > 0 {
			untried = addCondition(nil, found.negated())
		}
		before = append(before, nested(a.whereTrue(x, o, untried), []jen.Code{jen.Id(holds).Op("=").True()})...)
	}
	return append(headers, header{before: before, condition: anyOf(found, inline)})
}
