package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
)

// refused returns what a refused call does. If limits have it return different things,
// the decision has the name of the one that refused it. What is refused by no limit,
// because the store is away for instance, returns what the last of the answers says:
// the error, if that is one of them, or what the first limit gives.
func (a *admission) refused() []jen.Code {
	if a.yield != "" {
		return a.yieldError()
	}
	last := a.method.Limits[0]
	for _, l := range a.method.Limits {
		if l.Deny == nil {
			last = l
		}
	}
	var code []jen.Code
	var answers []*model.Limit // each with another answer
	by := map[string]jen.Code{}
	for _, l := range a.method.Limits {
		text := l.DenyText()
		if text == last.DenyText() {
			continue
		}
		is := jen.Id(a.decision).Dot("Rule").Op("==").Id(l.Rule.VarName).Dot("Name")
		if by[text] == nil {
			answers = append(answers, l)
			by[text] = is
		} else {
			by[text] = jen.Add(by[text]).Op("||").Add(is)
		}
	}
	for _, l := range answers {
		code = append(code, jen.If(by[l.DenyText()]).Block(a.answer(l)...))
	}
	return append(code, a.answer(last)...)
}

// answer returns what a call does that a limit has refused: it returns what the limit's
// deny gives, or is answered over HTTP, or returns the error.
func (a *admission) answer(l *model.Limit) []jen.Code {
	if l.Deny != nil {
		return a.fallback(l.Deny)
	}
	if w, r := a.method.Handler(); w != nil {
		err := jen.Id(a.names.params[a.method.Refusal])
		answer := jen.Id(a.imports.name(naming.HTTPPath)).Dot("Deny")
		return []jen.Code{answer.Call(jen.Id(a.names.params[w]), jen.Id(a.names.params[r]), err), jen.Return()}
	}
	return []jen.Code{a.returnError()}
}

// returnError returns zero values and the error of the refusal.
func (a *admission) returnError() jen.Code {
	var results []jen.Code
	for _, zero := range a.zeros {
		results = append(results, jen.Op(zero))
	}
	return jen.Return(append(results, jen.Id(a.names.params[a.method.Refusal]))...)
}

// fallback returns what a deny gives, or the error where the call of it cannot be
// evaluated.
func (a *admission) fallback(deny *expr.Expr) []jen.Code {
	x := deny.Lower(expr.Facts{})
	code := a.statements(x.Expr, x.Steps, func(*expr.Test) []jen.Code { return []jen.Code{a.returnError()} })
	call := jen.Op(a.text(x.Expr, a.names))
	if len(a.method.Results) == 0 {
		return append(code, call, jen.Return())
	}
	return append(code, jen.Return(call))
}
