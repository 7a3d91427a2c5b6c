package model

import (
	"cmp"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// ReturnsError reports whether a method's last result is an error.
func (m *Method) ReturnsError() bool {
	n := len(m.Results)
	return n > 0 && expr.IsError(m.Results[n-1].Type)
}

// Handler returns the first two parameters of a method without results, if they
// are those of an HTTP handler. Its refused calls are answered over HTTP.
func (m *Method) Handler() (w, r *expr.Param) {
	if len(m.Results) > 0 || len(m.Params) < 2 || m.Type.Variadic() && len(m.Params) == 2 {
		return nil, nil
	}
	w, r = m.Params[0], m.Params[1]
	request, isPointer := types.Unalias(r.Type).(*types.Pointer)
	if !isPointer || !gotypes.IsNamed(w.Type, "net/http", "ResponseWriter") || !gotypes.IsNamed(request.Elem(), "net/http", "Request") {
		return nil, nil
	}
	return w, r
}

// answers reports whether a refused call of a method has something to return without
// a deny.
func (m *Method) answers() bool {
	w, _ := m.Handler()
	return w != nil || m.ReturnsError() || m.Stream != nil && m.Stream.Kind == Sequence
}

// canRefuse reports whether a method with these directives and these rules of
// its whole interface has something to return for a refused call.
func (m *Method) canRefuse(own []*directive.Directive, shared []*Rule) bool {
	if m.answers() {
		return true
	}
	refuses := func(s *directive.Settings) bool { return s.Expr("deny") != nil }
	return slices.ContainsFunc(settingsIn(own), refuses) ||
		slices.ContainsFunc(shared, func(r *Rule) bool { return refuses(r.Settings) && !r.LeavesOut(m.Name) })
}

// applyDeny finds what each limit of a method has a refused call return. That of a whole
// interface gives way to the method's own if it does not fit its results. Where the
// method has nothing to return but what a deny gives, a limit without one takes the
// method's own, or else that of another limit.
func (b *Builder) applyDeny(w *Wrapper, m *Method, scope *expr.Scope) {
	var own, other *directive.Value
	for _, l := range m.Limits {
		v := l.Rule.Expr("deny")
		other = cmp.Or(other, v)
		if !w.IsShared(l.Rule) {
			own = cmp.Or(own, v)
		}
	}
	checked := map[directive.Value]*expr.Expr{}
	for _, l := range m.Limits {
		v, shared := l.Rule.Expr("deny"), w.IsShared(l.Rule)
		if v == nil && !m.answers() {
			v = cmp.Or(own, other)
		} else if v != nil && own != nil && shared && scope.Quiet().Call("deny", *v, m.Refused(), "") == nil {
			v = own
		}
		if v == nil {
			continue
		}
		if _, ok := checked[*v]; !ok {
			remedy := "call a function that gives the same"
			if shared {
				remedy += ", add except=" + m.Name + ", or write a deny of its own for " + m.Name
			}
			checked[*v] = scope.Call("deny", *v, m.Refused(), remedy)
		}
		l.Deny = checked[*v]
	}
	b.checkNames(m)
}

// checkNames refuses limits that answer differently and that a call cannot tell apart,
// since it knows which one refused it by its name.
func (b *Builder) checkNames(m *Method) {
	seen := map[string]*Limit{}
	for _, l := range m.Limits {
		before := seen[l.Rule.Name]
		if before != nil && before.DenyText() != l.DenyText() {
			b.Report.At(l.Rule.Pos, "deny: another limit of %s has the name %s, too, and answers a refused call differently: give each its own name", m.Name, l.Rule.Name).Mark(directive.Prefix)
		}
		seen[l.Rule.Name] = l
	}
}

// DenyText returns the deny of a limit as it is written, or "".
func (l *Limit) DenyText() string {
	if l.Deny == nil {
		return ""
	}
	return l.Deny.Source.Text
}

// AnswersDiffer reports whether which limit has refused a call decides what it returns.
func (m *Method) AnswersDiffer() bool {
	return slices.ContainsFunc(m.Limits, func(l *Limit) bool { return l.DenyText() != m.Limits[0].DenyText() })
}
