package emit

import "github.com/dave/jennifer/jen"

// context returns the context of the call.
func (a *admission) context() *jen.Statement {
	if p := a.method.Context(); p != nil {
		return jen.Id(a.names.params[p])
	}
	if _, r := a.method.Handler(); r != nil {
		return jen.Id(a.names.params[r]).Dot("Context").Call()
	}
	return jen.Id(a.imports.name("context")).Dot("Background").Call()
}
