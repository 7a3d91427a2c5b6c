package emit

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
)

// wrapper writes the rules, the type and its methods.
func (e *emitter) wrapper(f *jen.File, w *model.Wrapper) {
	f.Line()
	var rules []jen.Code
	for _, r := range w.Rules {
		rules = append(rules, jen.Id(r.VarName).Op("=").Op("&").Add(e.runtime("Rule")).Values(e.ruleFields(r)...))
	}
	if len(rules) == 1 {
		f.Comment(fmt.Sprintf("The limit of %s.", w.Name))
		f.Var().Add(rules[0])
	} else {
		f.Comment(fmt.Sprintf("The limits of %s.", w.Name))
		f.Var().Defs(rules...)
	}
	params, args := e.typeParams(w)
	self := func() *jen.Statement { return jen.Id(w.TypeName).Add(args) }
	next := func() *jen.Statement { return jen.Op(e.wrappedName(w)).Add(args) }
	limiter := func() *jen.Statement { return jen.Op("*").Add(e.runtime("Limiter")) }

	if w.Decl.Concrete != nil {
		e.interfaceOf(f, w, params)
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s is %s %s that admits calls within the limits declared on its methods and passes them on.", w.TypeName, indefinite(e.wrappedName(w)), e.wrappedName(w)))
	f.Type().Id(w.TypeName).Add(params).Struct(
		jen.Id(w.NextField()).Add(next()),
		jen.Id(w.LimiterField()).Add(limiter()),
	)
	if w.TypeParams.Len() == 0 {
		f.Line()
		f.Var().Id("_").Op(e.wrappedName(w)).Op("=").Parens(jen.Op("*").Id(w.TypeName)).Parens(jen.Nil())
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s returns next behind the limits of its methods.", w.Constructor))
	var body []jen.Code
	if w.TypeParams.Len() > 0 {
		// There are no generic variables, so the assertion stands here.
		body = append(body, jen.Var().Id("_").Add(next()).Op("=").Parens(jen.Op("*").Add(self())).Parens(jen.Nil()))
	}
	body = append(body, jen.Return(jen.Op("&").Add(self()).Op("{"+w.NextField()+": next, "+w.LimiterField()+": limiter}")))
	f.Func().Id(w.Constructor).Add(params).Params(
		jen.Id("next").Add(next()), jen.Id("limiter").Add(limiter()),
	).Op("*").Add(self()).Block(body...)
	receiver := e.receiver(w)
	for _, m := range w.Methods {
		f.Line()
		e.method(f, w, m, receiver, self())
	}
}

// wrappedName returns the name of the interface that is wrapped. That of a
// concrete type is generated along with the wrapper.
func (e *emitter) wrappedName(w *model.Wrapper) string {
	if w.Decl.Concrete != nil {
		return w.Wrapped
	}
	return e.qualified(w.Wrapped)
}

// qualified returns how to write an exported name of the source's package.
func (e *emitter) qualified(name string) string {
	if q := e.imports.qualifier(e.file.Pkg.Types); q != "" {
		return q + "." + name
	}
	return name
}

// typeParams returns a type's parameters as declared and as arguments.
func (e *emitter) typeParams(w *model.Wrapper) (params, args *jen.Statement) {
	if w.TypeParams.Len() == 0 {
		return jen.Null(), jen.Null()
	}
	names := e.typeParamNames(w)
	var decl []string
	for i, name := range names {
		decl = append(decl, name+" "+e.imports.typeString(w.TypeParams.At(i).Constraint()))
	}
	return jen.Op("[" + strings.Join(decl, ", ") + "]"), jen.Op("[" + strings.Join(names, ", ") + "]")
}

// typeParamNames returns the names of a type's parameters; blank ones get one.
func (e *emitter) typeParamNames(w *model.Wrapper) []string {
	if w.TypeParams.Len() == 0 {
		return nil
	}
	taken := maps.Clone(e.names)
	for p := range w.TypeParams.TypeParams() {
		taken[p.Obj().Name()] = true
	}
	var names []string
	for p := range w.TypeParams.TypeParams() {
		name := p.Obj().Name()
		if name == "_" {
			name = naming.Free(fmt.Sprint("T", len(names)), taken)
			taken[name] = true
		}
		names = append(names, name)
	}
	return names
}

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
