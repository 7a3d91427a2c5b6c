package model

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
)

// contextType is context.Context, for packages that may not import it themselves.
var contextType = types.NewNamed(types.NewTypeName(token.NoPos, types.NewPackage("context", "context"), "Context", nil), types.NewInterfaceType(nil, nil), nil)

// Accessor returns the method that tells what is left to the calls of this one, and nil if
// there is to be none. It takes a context and those parameters that decide which limits
// apply, to which key and with which max: the caller has no others, and a directive that
// reads one more changes the signature, so that no caller forgets it.
func (m *Method) Accessor() *Method {
	if m.usage == "" {
		return nil
	}
	a := &Method{Signature: expr.Signature{Name: m.usage, Types: m.Types, Receiver: m.Receiver}, Type: m.Type, all: m.all}
	for _, l := range m.Limits {
		a.Limits = append(a.Limits, &Limit{Rule: l.Rule, Parts: l.Parts, Share: l.Share, Weight: l.Weight, Max: l.Max, When: l.When, Zone: l.Zone, Anchor: l.Anchor})
	}
	read := map[*expr.Param]bool{}
	a.EachExpr(func(x *expr.Expr) {
		for _, p := range x.Params {
			read[p] = true
		}
	})
	ctx := m.Context()
	if ctx == nil {
		ctx = &expr.Param{Source: "ctx", Type: contextType}
	}
	a.Params = []*expr.Param{ctx}
	for _, p := range m.Params {
		if read[p] && p != ctx {
			a.Params = append(a.Params, p)
		}
	}
	return a
}

// IsVariadic reports whether a parameter is given as any number of arguments.
func (m *Method) IsVariadic(p *expr.Param) bool {
	return m.Type.Variadic() && p == m.all[len(m.all)-1]
}

// applyUsage names the accessors of methods, and reports names that there are already.
func (b *Builder) applyUsage(w *Wrapper) {
	taken := map[string]string{w.NextField(): "a field", w.LimiterField(): "a field"}
	for _, obj := range w.Embeds {
		taken[obj.Name()] = "a field"
	}
	for _, m := range w.Methods {
		taken[m.Name] = "a method"
	}
	for _, m := range w.Methods {
		var by *directive.Settings
		for _, l := range m.Limits {
			s := l.Rule.Settings
			if s.Usage() == "" {
				continue
			}
			if by == nil {
				by = s
			} else if by.Usage() != s.Usage() {
				b.Report.At(s.Place("usage"), "usage: another directive of %s has the ending %s: remove one", m.Name, by.Usage()).Mark(s.Usage())
			}
		}
		if by == nil {
			continue
		}
		m.usage = m.Name + by.Usage()
		if what := taken[m.usage]; what != "" {
			b.Report.At(by.Place("usage"), "usage: %s has %s %s already: write another ending, as usage=Left for a method %sLeft", w.TypeName, what, m.usage, m.Name)
		}
		taken[m.usage] = "a method"
	}
}

// Informs reports whether a method of the wrapper tells callers what is left.
func (w *Wrapper) Informs() bool {
	return slices.ContainsFunc(w.Methods, func(m *Method) bool { return m.usage != "" })
}
