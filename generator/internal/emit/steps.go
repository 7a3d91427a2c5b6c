package emit

import (
	"go/ast"
	"go/token"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// There are three ways to write the steps of an expression: as the branches of
// one if where something is to be done about each test that is not passed
// (guarded), as ifs within ifs where nothing is (headers), and as statements that
// return (statements). The last one can write all; where steps are to be done on a
// condition it is the only one.

// bind declares the variable of a node, and returns what it stands for.
func (a *admission) bind(x *expr.Expr, n ast.Expr, base string) *jen.Statement {
	value := a.headerText(x, n, a.names)
	name := a.names.pick(base)
	a.names.binds[n] = name
	return jen.Id(name).Op(":=").Op(value)
}

// tested returns the test of the variable that the first of some steps declares,
// if that is what the second step is.
func tested(steps []expr.Step) *expr.Test {
	if len(steps) < 2 {
		return nil
	}
	if t, ok := steps[1].(*expr.Test); ok && len(t.Path) == 0 && ast.Unparen(t.Subject) == ast.Unparen(steps[0].(*expr.Bind).Node) {
		return t
	}
	return nil
}

// guarded writes do after the steps of an expression. Where a test is not passed
// it writes what fail returns instead.
func (a *admission) guarded(x *expr.Lowered, fail func(*expr.Test) jen.Code, do func() []jen.Code) []jen.Code {
	if expr.HasShort(x.Steps) {
		code := a.statements(x.Expr, x.Steps, func(t *expr.Test) []jen.Code { return []jen.Code{fail(t), jen.Return()} })
		return []jen.Code{jen.Func().Params().Block(append(code, do()...)...).Call()}
	}
	code, _ := a.branches(x.Expr, x.Steps, fail, do)
	return code
}

// branches also reports whether the code is one if statement.
func (a *admission) branches(x *expr.Expr, steps []expr.Step, fail func(*expr.Test) jen.Code, do func() []jen.Code) ([]jen.Code, bool) {
	if len(steps) == 0 {
		return do(), false
	}
	var init []jen.Code
	test, isTest := steps[0].(*expr.Test)
	if b, ok := steps[0].(*expr.Bind); ok {
		init = append(init, a.bind(x, b.Node, "v"))
		if test = tested(steps); test == nil {
			rest, _ := a.branches(x, steps[1:], fail, do)
			return append(init, rest...), false
		}
		isTest, steps = true, steps[1:]
	}
	if !isTest {
		return nil, false
	}
	code := jen.If(append(init, jen.Op(a.fails(x, test).String()))...).Block(fail(test)).Else()
	rest, isIf := a.branches(x, steps[1:], fail, do)
	if isIf {
		return []jen.Code{code.Add(rest...)}, true
	}
	return []jen.Code{code.Block(rest...)}, true
}

// headers returns the ifs within which an expression can be evaluated. There
// must be nothing in its steps that is done on a condition.
func (a *admission) headers(x *expr.Expr, steps []expr.Step) []header {
	var headers []header
	for i, s := range steps {
		switch s := s.(type) {
		case *expr.Test:
			headers = addCondition(headers, a.fails(x, s).negated())
		case *expr.Bind:
			declare := a.bind(x, s.Node, "v")
			if tested(steps[i:]) != nil {
				headers = append(headers, header{init: []jen.Code{declare}})
			} else {
				headers = append(headers, header{before: []jen.Code{declare}})
			}
		}
	}
	return headers
}

// statements writes the steps of an expression. Where a test is not passed, fail
// says what to do, which must end in a return.
func (a *admission) statements(x *expr.Expr, steps []expr.Step, fail func(*expr.Test) []jen.Code) []jen.Code {
	var code []jen.Code
	for _, s := range steps {
		switch s := s.(type) {
		case *expr.Test:
			code = append(code, jen.If(jen.Op(a.fails(x, s).String())).Block(fail(s)...))
		case *expr.Bind:
			code = append(code, a.bind(x, s.Node, "v"))
		case *expr.Short:
			first := a.nodeText(x, s.Node.X, a.names)
			name := a.names.pick("ok")
			code = append(code, jen.Id(name).Op(":=").Op(first))
			right := a.statements(x, s.Right, fail)
			right = append(right, jen.Id(name).Op("=").Op(a.nodeText(x, s.Node.Y, a.names)))
			a.names.binds[s.Node] = name
			decided := plain(name)
			if s.Node.Op == token.LOR {
				decided = decided.negated()
			}
			code = append(code, jen.If(jen.Op(decided.String())).Block(right...))
		}
	}
	return code
}

// evaluable returns the ifs within which an expression can be evaluated, or what
// returns from a function of its own where it cannot.
func (a *admission) evaluable(x *expr.Lowered, headers []header, do func() []jen.Code) []jen.Code {
	if expr.HasShort(x.Steps) {
		code := a.statements(x.Expr, x.Steps, func(*expr.Test) []jen.Code { return []jen.Code{jen.Return()} })
		return nested(headers, []jen.Code{jen.Func().Params().Block(append(code, do()...)...).Call()})
	}
	headers = chain(headers, a.headers(x.Expr, x.Steps))
	return nested(headers, do())
}

// isOneIf reports whether evaluable writes one if statement for steps.
func isOneIf(steps []expr.Step) bool {
	if len(steps) == 0 || expr.HasShort(steps) {
		return false
	}
	_, isTest := steps[0].(*expr.Test)
	return isTest || tested(steps) != nil
}
