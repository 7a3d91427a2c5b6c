// Package emit writes the Go source of generated files. The same input gives the
// same bytes.
package emit

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/types"
	"go/version"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/internal/spec"
)

// An emitter writes one generated file.
type emitter struct {
	file    *model.File
	imports *importSet
	names   map[string]bool // that declarations of the package must not have
}

// Render returns the file that is generated for a source file.
func Render(f *model.File) ([]byte, error) {
	e := &emitter{file: f, imports: newImportSet(f), names: f.TakenNames()}
	return e.render()
}

func (e *emitter) render() ([]byte, error) {
	e.collectImports()
	f := jen.NewFile(e.file.Home.Name())
	f.HeaderComment(output.Header)
	line := buildLine(e.file.Content)
	if line != "" {
		f.HeaderComment("")
		f.HeaderComment(line)
	}
	f.Add(e.imports.decl())
	f.Line()
	if e.file.Out != nil {
		f.Comment(output.DeclaredIn(e.file.Pkg.Types.Path()))
		f.Line()
	}
	f.Comment("This code needs a runtime of version 0.1.0 or later.")
	f.Const().Id("_").Op("=").Add(e.runtime("IsAtLeastVersion0_1_0"))
	for _, w := range e.file.Wrappers {
		e.wrapper(f, w)
	}
	var out bytes.Buffer
	if err := f.Render(&out); err != nil {
		return nil, err
	}
	if err := e.checkHidden(out.Bytes()); err != nil {
		return nil, err
	}
	// jennifer writes an empty header comment as "// ".
	return bytes.Replace(out.Bytes(), []byte(output.Header+"\n//\n"), []byte(output.Header+"\n\n"), 1), nil
}

// language is the version of Go that the generated code is written in: that of the runtime.
const language = "go1.26"

// buildLine returns the //go:build line of a source file, or "". One that has its file compiled
// as a former version of Go requires the language of the generated code as well, which holds
// wherever there is a runtime.
func buildLine(source []byte) string {
	line := strings.TrimSpace(output.BuildLines(source))
	expr, err := constraint.Parse(line)
	if err != nil {
		return line
	}
	if v := constraint.GoVersion(expr); v == "" || version.Compare(v, language) >= 0 {
		return line
	}
	return "//go:build " + (&constraint.AndExpr{X: expr, Y: &constraint.TagExpr{Tag: language}}).String()
}

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
	held, what := next, w.Wrapped // what the wrapper holds
	if w.UsesReceiver() {
		what = "*" + w.Name
		held = func() *jen.Statement { return jen.Op("*" + e.qualified(w.Name)).Add(args) }
	}
	limiter := func() *jen.Statement { return jen.Op("*").Add(e.runtime("Limiter")) }

	if w.Decl.Concrete != nil {
		e.interfaceOf(f, w, params)
	}
	f.Line()
	comment(f.Group, fmt.Sprintf("%s is %s %s that admits calls within the limits declared on its methods and passes them on.", w.TypeName, indefinite(e.wrappedName(w)), e.wrappedName(w)))
	f.Type().Id(w.TypeName).Add(params).Struct(append(e.embedded(w),
		jen.Id(w.NextField()).Add(held()),
		jen.Id(w.LimiterField()).Add(limiter()),
	)...)
	if w.TypeParams.Len() == 0 {
		f.Line()
		f.Var().Id("_").Op(e.wrappedName(w)).Op("=").Parens(jen.Op("*").Id(w.TypeName)).Parens(jen.Nil())
	}
	f.Line()
	value, limits := e.argumentNames(w)
	comment(f.Group, fmt.Sprintf("%s returns %s behind the limits of its methods. It panics if one of its arguments is nil.", w.Constructor, value))
	body := refuseNil(w, what, value, limits)
	if w.TypeParams.Len() > 0 {
		// There are no generic variables, so the assertion stands here.
		body = append(body, jen.Var().Id("_").Add(next()).Op("=").Parens(jen.Op("*").Add(self())).Parens(jen.Nil()))
	}
	body = append(body, register(w, limits))
	body = append(body, jen.Return(jen.Op("&").Add(self()).Op("{"+w.NextField()+": "+value+", "+w.LimiterField()+": "+limits+"}")))
	f.Func().Id(w.Constructor).Add(params).Params(
		jen.Id(value).Add(held()), jen.Id(limits).Add(limiter()),
	).Op("*").Add(self()).Block(body...)
	receiver := e.receiver(w)
	for _, m := range w.Methods {
		f.Line()
		e.method(f, w, m, receiver, self())
		e.stream(f, m, params, args)
		if a := m.Accessor(); a != nil {
			f.Line()
			e.accessor(f, w, m, a, receiver, self())
		}
	}
}

// ruleFields returns the fields of a generated rule: those that every rule has,
// then those that options set, in the order of runtime.Rule.
func (e *emitter) ruleFields(r *model.Rule) []jen.Code {
	var fields []jen.Code
	field := func(name string, v jen.Code) { fields = append(fields, jen.Line().Id(name).Op(":").Add(v)) }
	field("Name", jen.Lit(r.Name))
	field("Source", jen.Lit(r.Source))
	field("Prefix", jen.Lit(r.Prefix))
	window := r.Constants["window"]
	if window != nil {
		field("Window", jen.Op(e.nodeText(window, ast.Unparen(window.Node), nil)))
	} else if r.Period() == spec.NoUnit {
		field("Window", e.duration(r.Window()))
	}
	switch {
	case r.Dynamic:
		// The max comes with each call.
	case r.Constants["max"] != nil:
		field("Max", jen.Op(e.constant(r.Constants["max"])))
	case r.Max == nil:
		field("Max", jen.Op(fmt.Sprint(directive.DefaultMax)))
	default:
		field("Max", jen.Op(e.constant(r.Max)))
	}
	for _, f := range r.Fields() {
		x := r.Constants[f.Option]
		switch {
		case x == nil && f.Code == nil:
		case x == nil:
			field(f.Name, e.code(f.Code))
		case x.IsDuration():
			field(f.Name, jen.Op(e.nodeText(x, ast.Unparen(x.Node), nil)))
		default:
			field(f.Name, jen.Op(e.constant(x)))
		}
	}
	return append(fields, jen.Line())
}

// method writes one method of a wrapper.
func (e *emitter) method(f *jen.File, w *model.Wrapper, m *model.Method, receiver string, self *jen.Statement) {
	zeros := e.zeros(m)
	names := e.methodNames(w, m, receiver, zeros)
	comment(f.Group, methodDoc(m))
	params, args := e.params(m, names)
	a := e.newAdmission(m, names, receiver+"."+w.LimiterField(), jen.Id(receiver).Dot(w.NextField()).Dot(m.Name).Call(args...), zeros)
	_, a.typeArgs = e.typeParams(w)
	body := a.passOn
	if len(m.Limits) > 0 {
		body = a.body
	}
	f.Func().Params(jen.Id(receiver).Op("*").Add(self)).Id(m.Name).Params(params...).Add(e.results(m)).Block(body()...)
}

// params returns the parameters of a method as declared and as arguments.
func (e *emitter) params(m *model.Method, names *nameSet) (params, args []jen.Code) {
	for i, p := range m.Params {
		name := func() *jen.Statement { return jen.Id(names.params[p]) }
		next := i + 1
		if m.IsVariadic(p) {
			elem := p.Type
			if s, ok := p.Type.Underlying().(*types.Slice); ok {
				elem = s.Elem()
			}
			params, args = append(params, name().Op("...").Add(e.imports.typeCode(elem))), append(args, name().Op("..."))
			continue
		}
		if next < len(m.Params) && !m.IsVariadic(m.Params[next]) && types.Identical(p.Type, m.Params[next].Type) {
			params = append(params, name()) // a, b int rather than a int, b int
		} else {
			params = append(params, name().Add(e.imports.typeCode(p.Type)))
		}
		args = append(args, name())
	}
	return params, args
}

func (e *emitter) runtime(name string) *jen.Statement {
	return jen.Id(e.imports.name(naming.RuntimePath)).Dot(name)
}

func (e *emitter) wrapperFunc(name string) *jen.Statement {
	return jen.Id(e.imports.name(naming.WrapperPath)).Dot(name)
}
