package emit

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
)

// interfaceOf writes the interface of a concrete type.
func (e *emitter) interfaceOf(f *jen.File, w *model.Wrapper, params *jen.Statement) {
	var methods []jen.Code
	for _, served := range w.Serves {
		methods = append(methods, e.imports.typeCode(served.Type()))
	}
	for _, m := range w.Methods {
		if w.IsServed(m) {
			continue
		}
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

// embedded returns the interfaces that a wrapper embeds.
func (e *emitter) embedded(w *model.Wrapper) []jen.Code {
	var fields []jen.Code
	for _, obj := range w.Embeds {
		fields = append(fields, e.imports.typeCode(obj.Type()).Comment("for the method that only its package can declare; stays nil"))
	}
	if len(fields) > 0 {
		fields = append(fields, jen.Line())
	}
	return fields
}

// argumentNames returns the names of a constructor's parameters: next and limiter,
// if its body does not need what is called so.
func (e *emitter) argumentNames(w *model.Wrapper) (value, limiter string) {
	taken := map[string]bool{w.Name: true, w.Wrapped: true, w.TypeName: true}
	for _, name := range e.typeParamNames(w) {
		taken[name] = true
	}
	for _, name := range e.imports.names {
		taken[name] = true
	}
	return naming.Free("next", taken), naming.Free("limiter", taken)
}

// refuseNil writes what a constructor begins with: a mistake in how a program is
// put together shows when it starts, and not at the first call, or never.
func refuseNil(w *model.Wrapper, what, value, limiter string) []jen.Code {
	refuse := func(param, remedy string) jen.Code {
		return jen.If(jen.Id(param).Op("==").Nil()).Block(
			jen.Panic(jen.Lit(fmt.Sprintf("%s: %s is nil: %s", w.Constructor, param, remedy))),
		)
	}
	return []jen.Code{
		refuse(value, "pass the "+what+" to limit"),
		refuse(limiter, "make one with runtime.New"),
	}
}

// register writes the line of a constructor that makes the wrapper's rules known
// to the limiter.
func register(w *model.Wrapper, limiter string) jen.Code {
	var rules []jen.Code
	for _, r := range w.Rules {
		rules = append(rules, jen.Id(r.VarName))
	}
	if len(rules) > 2 { // one a line
		for i, r := range rules {
			rules[i] = jen.Line().Add(r)
		}
		rules = append(rules, jen.Line())
	}
	return jen.Id(limiter).Dot("Register").Call(rules...)
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
