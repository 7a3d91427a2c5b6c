package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/naming"
)

// refused returns what a refused call does: it returns what the method's deny
// gives, or is answered over HTTP, or returns the error.
func (a *admission) refused() []jen.Code {
	m := a.method
	if m.Deny != nil {
		return a.denied()
	}
	if w, r := m.Handler(); w != nil {
		err := jen.Id(a.names.params[m.Refusal])
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

// denied returns what the method's deny gives, or the error where the call of
// deny cannot be evaluated.
func (a *admission) denied() []jen.Code {
	x := a.method.Deny.Lower(expr.Facts{})
	code := a.statements(x.Expr, x.Steps, func(*expr.Test) []jen.Code { return []jen.Code{a.returnError()} })
	call := jen.Op(a.text(x.Expr, a.names))
	if len(a.method.Results) == 0 {
		return append(code, call, jen.Return())
	}
	return append(code, jen.Return(call))
}
