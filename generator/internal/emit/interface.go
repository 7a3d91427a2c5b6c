package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
)

// interfaceOf writes the interface of a concrete type.
func (e *emitter) interfaceOf(f *jen.File, w *model.Wrapper, params *jen.Statement) {
	var methods []jen.Code
	for _, m := range w.Methods {
		methods = append(methods, jen.Id(m.Name).Op(strings.TrimPrefix(e.imports.typeString(m.Type), "func")))
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s has the exported methods of %s, which the limits apply to.", w.Wrapped, e.qualified(w.Name)))
	f.Type().Id(w.Wrapped).Add(params).Interface(methods...)
	if w.TypeParams.Len() == 0 {
		f.Line()
		f.Var().Id("_").Id(w.Wrapped).Op("=").Parens(jen.Op("*").Op(e.qualified(w.Name))).Parens(jen.Nil())
	}
}
