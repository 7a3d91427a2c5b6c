package emit

import "github.com/dave/jennifer/jen"

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
	value := a.exprString(m.Ctx, a.names)
	if len(m.Ctx.Guards) == 0 {
		return jen.Op(value)
	}
	ctx := a.names.pick("ctx")
	var set jen.Code = jen.Id(ctx).Op("=").Op(value)
	for i := len(m.Ctx.Guards) - 1; i >= 0; i-- {
		set = jen.If(a.guardPassed(m.Ctx.Guards[i], m.Ctx)...).Block(set)
	}
	a.add(jen.Id(ctx).Op(":=").Add(background()))
	a.add(set)
	return jen.Id(ctx)
}
