package emit

import "github.com/dave/jennifer/jen"

// measures returns what has the limits that apply, and adapt to it, measure the
// call that is let through.
func (a *admission) measures(limiter *jen.Statement) []jen.Code {
	var code []jen.Code
	for _, l := range a.method.Limits {
		if !l.Rule.Measured() {
			continue
		}
		now := jen.Id(a.imports.name("time")).Dot("Now").Call()
		measure := jen.Defer().Add(limiter).Dot("Measure").Call(jen.Id(l.Rule.VarName), now)
		if applies := a.applies[l]; applies != "" {
			measure = jen.If(jen.Id(applies)).Block(measure)
		}
		code = append(code, measure)
	}
	return code
}
