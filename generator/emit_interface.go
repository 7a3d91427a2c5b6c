package generator

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
)

// interfaceOf writes the interface of a concrete type.
func (e *emitter) interfaceOf(f *jen.File, w *wrapper, params *jen.Statement) {
	var methods []jen.Code
	for _, m := range w.methods {
		methods = append(methods, jen.Id(m.name).Op(strings.TrimPrefix(e.imports.typeString(m.sig), "func")))
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s has the exported methods of %s, which the limits apply to.", w.wrapped, e.qualified(w.name)))
	f.Type().Id(w.wrapped).Add(params).Interface(methods...)
	if w.tparams.Len() == 0 {
		f.Line()
		f.Var().Id("_").Id(w.wrapped).Op("=").Parens(jen.Op("*").Op(e.qualified(w.name))).Parens(jen.Nil())
	}
}
