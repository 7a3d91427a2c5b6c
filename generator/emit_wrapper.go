package generator

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"
)

// wrapper writes the rules, the type and its methods.
func (e *emitter) wrapper(f *jen.File, w *wrapper) {
	f.Line()
	var rules []jen.Code
	for _, l := range w.limits {
		rules = append(rules, jen.Id(l.varName).Op("=").Op("&").Add(e.runtime("Rule")).Values(e.ruleFields(l)...))
	}
	if len(rules) == 1 {
		f.Comment(fmt.Sprintf("The limit of %s.", w.name))
		f.Var().Add(rules[0])
	} else {
		f.Comment(fmt.Sprintf("The limits of %s.", w.name))
		f.Var().Defs(rules...)
	}
	params, args := e.typeParams(w)
	self := func() *jen.Statement { return jen.Id(w.typeName).Add(args) }
	next := func() *jen.Statement { return jen.Op(e.wrappedName(w)).Add(args) }
	limiter := func() *jen.Statement { return jen.Op("*").Add(e.runtime("Limiter")) }

	if w.decl.concrete != nil {
		e.interfaceOf(f, w, params)
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s is %s %s that admits calls within the limits declared on its methods and passes them on.", w.typeName, indefinite(e.wrappedName(w)), e.wrappedName(w)))
	f.Type().Id(w.typeName).Add(params).Struct(
		jen.Id(w.nextField()).Add(next()),
		jen.Id(w.limiterField()).Add(limiter()),
	)
	if w.tparams.Len() == 0 {
		f.Line()
		f.Var().Id("_").Op(e.wrappedName(w)).Op("=").Parens(jen.Op("*").Id(w.typeName)).Parens(jen.Nil())
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s returns next behind the limits of its methods.", w.constructor))
	var body []jen.Code
	if w.tparams.Len() > 0 {
		// There are no generic variables, so the assertion stands here.
		body = append(body, jen.Var().Id("_").Add(next()).Op("=").Parens(jen.Op("*").Add(self())).Parens(jen.Nil()))
	}
	body = append(body, jen.Return(jen.Op("&").Add(self()).Op("{"+w.nextField()+": next, "+w.limiterField()+": limiter}")))
	f.Func().Id(w.constructor).Add(params).Params(
		jen.Id("next").Add(next()), jen.Id("limiter").Add(limiter()),
	).Op("*").Add(self()).Block(body...)
	receiver := e.receiver(w)
	for _, m := range w.methods {
		f.Line()
		e.method(f, w, m, receiver, self())
	}
}

// wrappedName returns the name of the interface that is wrapped. That of a
// concrete type is generated along with the wrapper.
func (e *emitter) wrappedName(w *wrapper) string {
	if w.decl.concrete != nil {
		return w.wrapped
	}
	return e.qualified(w.wrapped)
}

// qualified returns how to write an exported name of the source's package.
func (e *emitter) qualified(name string) string {
	if q := e.imports.qualifier(e.file.pkg.Types); q != "" {
		return q + "." + name
	}
	return name
}

// typeParams returns a type's parameters as declared and as arguments.
func (e *emitter) typeParams(w *wrapper) (params, args *jen.Statement) {
	if w.tparams.Len() == 0 {
		return jen.Null(), jen.Null()
	}
	names := e.typeParamNames(w)
	var decl []string
	for i, name := range names {
		decl = append(decl, name+" "+e.imports.typeString(w.tparams.At(i).Constraint()))
	}
	return jen.Op("[" + strings.Join(decl, ", ") + "]"), jen.Op("[" + strings.Join(names, ", ") + "]")
}

// typeParamNames returns the names of a type's parameters; blank ones get one.
func (e *emitter) typeParamNames(w *wrapper) []string {
	if w.tparams.Len() == 0 {
		return nil
	}
	taken := maps.Clone(e.names)
	for p := range w.tparams.TypeParams() {
		taken[p.Obj().Name()] = true
	}
	var names []string
	for p := range w.tparams.TypeParams() {
		name := p.Obj().Name()
		if name == "_" {
			name = free(fmt.Sprint("T", len(names)), taken)
			taken[name] = true
		}
		names = append(names, name)
	}
	return names
}
