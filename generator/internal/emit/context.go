package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// context returns the context of a call. One that takes more than a parameter
// to have, or may be missing, is put into a variable first.
func (a *admission) context() *jen.Statement {
	m := a.method
	if m.PassesContext() {
		return jen.Id(a.names.params[m.Context()])
	}
	background := func() *jen.Statement { return jen.Id(a.imports.name("context")).Dot("Background").Call() }
	if m.Ctx == nil {
		return background()
	}
	x := m.Ctx.Lower(expr.Facts{})
	if len(x.Steps) == 0 {
		return jen.Op(a.text(m.Ctx, a.names))
	}
	ctx := a.names.pick("ctx")
	a.add(jen.Id(ctx).Op(":=").Add(background()))
	a.add(a.evaluable(x, nil, func() []jen.Code {
		return []jen.Code{jen.Id(ctx).Op("=").Op(a.text(m.Ctx, a.names))}
	})...)
	return jen.Id(ctx)
}
