package generator

import "github.com/dave/jennifer/jen"

// measures returns what has the limits that apply, and adapt to it, measure the
// call that is let through.
func (a *admission) measures(limiter *jen.Statement) []jen.Code {
	var code []jen.Code
	for _, u := range a.method.uses {
		if !u.limit.measured() {
			continue
		}
		now := jen.Id(a.imports.name("time")).Dot("Now").Call()
		measure := jen.Defer().Add(limiter).Dot("Measure").Call(jen.Id(u.limit.varName), now)
		if applies := a.applies[u]; applies != "" {
			measure = jen.If(jen.Id(applies)).Block(measure)
		}
		code = append(code, measure)
	}
	return code
}
