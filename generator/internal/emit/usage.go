package emit

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
)

// accessor writes the method that tells what is left to the calls of another one.
func (e *emitter) accessor(f *jen.File, w *model.Wrapper, m, accessor *model.Method, receiver string, self *jen.Statement) {
	names := e.methodNames(w, accessor, receiver, nil)
	params, _ := e.params(accessor, names)
	comment(f.Group, fmt.Sprintf("%s tells what is left of the limits of %s, and charges nothing.", accessor.Name, m.Name))
	usages := jen.Params(jen.Index().Add(e.runtime("Usage")), jen.Error())
	a := e.newAdmission(accessor, names, receiver+"."+w.LimiterField(), nil, nil)
	f.Func().Params(jen.Id(receiver).Op("*").Add(self)).Id(accessor.Name).Params(params...).Add(usages).Block(a.accessorBody()...)
}

// accessorBody writes the body of an accessor: the limits are built as for a call, and asked about.
func (a *admission) accessorBody() []jen.Code {
	var headers []header
	if only := a.only(); only != nil {
		only.when = a.when(only.When, false)
		headers = only.when.headers
	}
	ctx := jen.Id(a.names.params[a.method.Params[0]])
	limits := a.arguments()
	a.add(jen.Return(a.limiter.Clone().Dot("Usage").Call(append([]jen.Code{ctx}, limits...)...)))
	if len(headers) == 0 {
		return a.code
	}
	return append(nested(headers, a.code), jen.Return(jen.Nil(), jen.Nil()))
}
