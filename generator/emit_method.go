package generator

import (
	"fmt"
	"go/types"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"
)

// method writes one method of a wrapper.
func (e *emitter) method(f *jen.File, w *wrapper, m *method, receiver string, self *jen.Statement) {
	zeros := e.zeros(m)
	names := e.methodNames(w, m, receiver, zeros)
	comment(f.Group, m.doc())
	var params, args []jen.Code
	for i, p := range m.params {
		if m.sig.Variadic() && i == len(m.params)-1 {
			elem := p.typ
			if s, ok := p.typ.Underlying().(*types.Slice); ok {
				elem = s.Elem()
			}
			params = append(params, jen.Id(names.params[p]).Op("...").Add(e.imports.typeCode(elem)))
			args = append(args, jen.Id(names.params[p]).Op("..."))
			continue
		}
		args = append(args, jen.Id(names.params[p]))
		// a, b int rather than a int, b int
		if last := i + 1; last < len(m.params) && !(m.sig.Variadic() && last == len(m.params)-1) && types.Identical(p.typ, m.params[last].typ) {
			params = append(params, jen.Id(names.params[p]))
			continue
		}
		params = append(params, jen.Id(names.params[p]).Add(e.imports.typeCode(p.typ)))
	}
	var body []jen.Code
	if len(m.uses) > 0 {
		body = e.admission(m, names, jen.Id(receiver).Dot(w.limiterField()), zeros)
	}
	call := jen.Id(receiver).Dot(w.nextField()).Dot(m.name).Call(args...)
	if m.sig.Results().Len() > 0 {
		call = jen.Return(call)
	}
	f.Func().Params(jen.Id(receiver).Op("*").Add(self)).Id(m.name).Params(params...).Add(e.results(m)).Block(append(body, call)...)
}

func (e *emitter) results(m *method) jen.Code {
	var results []jen.Code
	for v := range m.sig.Results().Variables() {
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
func (e *emitter) zeros(m *method) []string {
	var zeros []string
	for i := range m.sig.Results().Len() - 1 {
		zeros = append(zeros, e.zero(m.sig.Results().At(i).Type()))
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

// doc says in one sentence how a method is limited.
func (m *method) doc() string {
	if len(m.uses) == 0 {
		return m.name + " has no limit."
	}
	var limits []string
	for _, u := range m.uses {
		limits = append(limits, u.doc())
	}
	text := limits[0]
	if n := len(limits); n > 1 {
		text = strings.Join(limits[:n-1], ", ") + " and to " + limits[n-1]
	}
	return m.name + " is limited to " + text + "."
}

func (u *use) doc() string {
	text := fmt.Sprintf("%s per %s", u.limit.rule.maxText(), shortDuration(u.limit.rule.window))
	if u.limit.keyText != "" {
		text += " for each " + u.limit.keyText
	}
	if u.when != nil {
		text += " when " + u.when.src.text
	}
	if by := u.limit.rule.adaptive; len(by) > 0 {
		text += " (adapts to " + strings.Join(by, " and ") + ")"
	}
	if u.limit.rule.mode == "shadow" {
		text += " in shadow mode"
	}
	return text
}

// maxText returns the max as it is written in the directive.
func (r *rule) maxText() string {
	if r.max == nil {
		return fmt.Sprint(defaultMax)
	}
	return r.max.text
}

// shortDuration is Duration.String without the zeros at its end.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
