package emit

import (
	"go/token"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// A when says how to write the condition of a limit. A limit applies, too, if its
// condition cannot be evaluated. Its key is then invalid, so that the failure
// policy decides.
type when struct {
	headers []header   // within which the limit applies
	reasons []reason   // why its key is invalid
	facts   expr.Facts // that hold where it applies and has no reason
}

// A reason is a condition under which a key is invalid.
type reason struct {
	condition
	text jen.Code
}

// when returns how to write the condition of a limit. With flat, all that stands
// before the last condition are statements that may stand anywhere.
func (a *admission) when(x *expr.Expr, flat bool) when {
	if x == nil {
		return when{}
	}
	cut, facts := x.Cut(false)
	if a.isInline(x, cut, true) {
		return when{[]header{{condition: a.unlessFalse(x, cut)}}, a.reasonsOf(x, cut, true), facts}
	}
	if !flat {
		if w := a.nestedWhen(x, cut); len(w.headers) > 0 {
			w.facts = facts
			return w
		}
	}
	return a.functionWhen(x)
}

// isInline reports whether a condition needs no variable. What && or || has
// tested is written again before the tests of what comes next, unless it is known
// to hold where the limit applies: on the left of an outermost &&.
func (a *admission) isInline(x *expr.Expr, c *expr.Condition, outermost bool) bool {
	if c.Op == token.ILLEGAL {
		return expr.OnlyTests(c.Steps)
	}
	outermost = outermost && c.Op == token.LAND
	twice := !c.Y.CannotFail() && (!outermost || c.X.Op != token.ILLEGAL)
	return a.isInline(x, c.X, outermost) && a.isInline(x, c.Y, outermost) && !(twice && x.Calls(c.X.Node))
}

// unlessFalse returns the condition that another one is true or cannot be
// evaluated.
func (a *admission) unlessFalse(x *expr.Expr, c *expr.Condition) condition {
	switch c.Op {
	case token.LAND:
		if c.X.CannotFail() {
			return allOf(a.conditionOf(x, c.X.Node), a.unlessFalse(x, c.Y))
		}
		return anyOf(a.cannot(x, c.X), allOf(a.conditionOf(x, c.X.Node), a.unlessFalse(x, c.Y)))
	case token.LOR:
		return anyOf(a.unlessFalse(x, c.X), a.unlessFalse(x, c.Y))
	}
	return anyOf(a.anyFails(x, expr.Tests(c.Steps)), a.conditionOf(x, c.Node))
}

// cannot returns the condition that another one cannot be evaluated.
func (a *admission) cannot(x *expr.Expr, c *expr.Condition) condition {
	if c.Op == token.ILLEGAL {
		return a.anyFails(x, expr.Tests(c.Steps))
	}
	if c.Y.CannotFail() {
		return a.cannot(x, c.X)
	}
	return anyOf(a.cannot(x, c.X), allOf(a.branch(x, c.X.Node, c.Op == token.LAND), a.cannot(x, c.Y)))
}

// reasonsOf returns why a condition cannot be evaluated. With applies, it is
// known not to be false.
func (a *admission) reasonsOf(x *expr.Expr, c *expr.Condition, applies bool) []reason {
	var reasons []reason
	if c.Op == token.ILLEGAL {
		for _, t := range expr.Tests(c.Steps) {
			reasons = append(reasons, reason{a.fails(x, t), jen.Lit(reasonOf(x, t))})
		}
		return reasons
	}
	known := applies && c.Op == token.LAND // so what is on the left holds, or has a reason
	reasons = a.reasonsOf(x, c.X, known)
	for _, r := range a.reasonsOf(x, c.Y, known) {
		if !known {
			r.condition = allOf(a.branch(x, c.X.Node, c.Op == token.LAND), r.condition)
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// nestedWhen writes a condition as ifs within ifs, if it is operands of && that
// can be evaluated, then one that needs a variable first, and then others that
// need none.
func (a *admission) nestedWhen(x *expr.Expr, c *expr.Condition) when {
	var first condition
	for c.Op == token.LAND && c.X.CannotFail() && c.X.OnlyTests() {
		first = allOf(first, a.conditionOf(x, c.X.Node))
		c = c.Y
	}
	rest := *c
	bound := &rest
	if c.Op != token.ILLEGAL {
		operand := *c.X
		rest.X, bound = &operand, &operand
	}
	if c.Op == token.LOR || len(bound.Steps) == 0 || c.Op == token.LAND && !a.isInline(x, c.Y, true) {
		return when{}
	}
	b, ok := bound.Steps[0].(*expr.Bind)
	if !ok || !expr.OnlyTests(bound.Steps[1:]) {
		return when{}
	}
	declare := a.bind(x, b.Node, "v")
	bound.Steps = bound.Steps[1:]
	return when{
		headers: []header{{condition: first}, {init: []jen.Code{declare}, condition: a.unlessFalse(x, &rest)}},
		reasons: a.reasonsOf(x, &rest, true),
	}
}

// functionWhen writes a condition as a function that says whether the limit
// applies and, if that cannot be told, why not.
func (a *admission) functionWhen(x *expr.Expr) when {
	fails := len(expr.Tests(x.Lower(expr.Facts{}).Steps)) > 0
	result := func(value jen.Code, why jen.Code) jen.Code {
		if fails {
			return jen.Return(value, why)
		}
		return jen.Return(value)
	}
	body := a.conditionBody(x, func(t *expr.Test) []jen.Code {
		return []jen.Code{result(jen.True(), jen.Lit(reasonOf(x, t)))}
	}, func(value jen.Code) jen.Code { return result(value, jen.Lit("")) })
	applies := a.names.pick("applies")
	if !fails {
		call := jen.Id(applies).Op(":=").Func().Params().Bool().Block(body...).Call()
		return when{headers: []header{{before: []jen.Code{call}, condition: plain(applies)}}}
	}
	invalid := a.names.pick("invalid")
	call := jen.List(jen.Id(applies), jen.Id(invalid)).Op(":=").Func().Params().Params(jen.Bool(), jen.String()).Block(body...).Call()
	return when{
		headers: []header{{before: []jen.Code{call}, condition: plain(applies)}},
		reasons: []reason{{condition{text: invalid + ` != ""`, not: invalid + ` == ""`}, jen.Id(invalid)}},
	}
}

// conditionBody writes the body of a function that evaluates a condition.
func (a *admission) conditionBody(x *expr.Expr, fail func(*expr.Test) []jen.Code, result func(jen.Code) jen.Code) []jen.Code {
	var code []jen.Code
	for _, s := range x.InTurn() {
		code = append(code, a.statements(x, s.Steps, fail)...)
		value := a.conditionOf(x, s.Node)
		switch s.Op {
		case token.LAND:
			code = append(code, jen.If(jen.Op(a.branch(x, s.Node, false).String())).Block(result(jen.False())))
		case token.LOR:
			code = append(code, jen.If(jen.Op(value.String())).Block(result(jen.True())))
		default:
			code = append(code, result(jen.Op(value.String())))
		}
	}
	return code
}
