package emit

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/model"
)

// method writes one method of a wrapper.
func (e *emitter) method(f *jen.File, w *model.Wrapper, m *model.Method, receiver string, self *jen.Statement) {
	zeros := e.zeros(m)
	names := e.methodNames(w, m, receiver, zeros)
	comment(f.Group, methodDoc(m))
	var params, args []jen.Code
	for i, p := range m.Params {
		if m.Type.Variadic() && i == len(m.Params)-1 {
			elem := p.Type
			if s, ok := p.Type.Underlying().(*types.Slice); ok {
				elem = s.Elem()
			}
			params = append(params, jen.Id(names.params[p]).Op("...").Add(e.imports.typeCode(elem)))
			args = append(args, jen.Id(names.params[p]).Op("..."))
			continue
		}
		args = append(args, jen.Id(names.params[p]))
		// a, b int rather than a int, b int
		if last := i + 1; last < len(m.Params) && !(m.Type.Variadic() && last == len(m.Params)-1) && types.Identical(p.Type, m.Params[last].Type) {
			params = append(params, jen.Id(names.params[p]))
			continue
		}
		params = append(params, jen.Id(names.params[p]).Add(e.imports.typeCode(p.Type)))
	}
	var body []jen.Code
	if len(m.Limits) > 0 {
		body = e.admission(m, names, jen.Id(receiver).Dot(w.LimiterField()), zeros)
	}
	call := jen.Id(receiver).Dot(w.NextField()).Dot(m.Name).Call(args...)
	if m.Type.Results().Len() > 0 {
		call = jen.Return(call)
	}
	f.Func().Params(jen.Id(receiver).Op("*").Add(self)).Id(m.Name).Params(params...).Add(e.results(m)).Block(append(body, call)...)
}

func (e *emitter) results(m *model.Method) jen.Code {
	var results []jen.Code
	for v := range m.Type.Results().Variables() {
		results = append(results, e.imports.typeCode(v.Type()))
	}
	switch len(results) {
	case 0:
		return jen.Null()
	case 1:
		return results[0]
	}
	return jen.Params(results...)
}

// zeros returns the zero values of all results but the error.
func (e *emitter) zeros(m *model.Method) []string {
	var zeros []string
	for i := range m.Type.Results().Len() - 1 {
		zeros = append(zeros, e.zero(m.Type.Results().At(i).Type()))
	}
	return zeros
}

func (e *emitter) zero(t types.Type) string {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "*new(" + e.imports.typeString(t) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return "false"
		case u.Info()&types.IsString != 0:
			return `""`
		case u.Info()&types.IsNumeric != 0:
			return "0"
		}
	case *types.Struct, *types.Array:
		return e.imports.typeString(t) + "{}"
	}
	return "nil"
}

// methodDoc says in one sentence how a method is limited.
func methodDoc(m *model.Method) string {
	if len(m.Limits) == 0 {
		return m.Name + " has no limit."
	}
	var limits []string
	for _, l := range m.Limits {
		limits = append(limits, limitDoc(l))
	}
	text := limits[0]
	if n := len(limits); n > 1 {
		text = strings.Join(limits[:n-1], ", ") + " and to " + limits[n-1]
	}
	return m.Name + " is limited to " + text + "."
}

func limitDoc(l *model.Limit) string {
	text := fmt.Sprintf("%s per %s", l.Rule.MaxText(), directive.ShortDuration(l.Rule.Window()))
	if key := l.Rule.KeyText(); key != "" {
		text += " for each " + key
	}
	if l.When != nil {
		text += " when " + l.When.Source.Text
	}
	if by := l.Rule.Adaptive(); len(by) > 0 {
		text += " (adapts to " + strings.Join(by, " and ") + ")"
	}
	if l.Rule.IsShadow() {
		text += " in shadow mode"
	}
	return text
}
