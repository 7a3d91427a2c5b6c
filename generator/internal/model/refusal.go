package model

import (
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
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
	if !isPointer || !isNamed(w.Type, "net/http", "ResponseWriter") || !isNamed(request.Elem(), "net/http", "Request") {
		return nil, nil
	}
	return w, r
}

// isNamed reports whether a type is the named one of a package.
func isNamed(t types.Type, pkgPath, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkgPath
}

// canRefuse reports whether a method with these directives and these rules of
// its whole interface has something to return for a refused call.
func (m *Method) canRefuse(own []*directive.Directive, shared []*Rule) bool {
	if w, _ := m.Handler(); w != nil || m.ReturnsError() {
		return true
	}
	denies := func(s *directive.Settings) bool { return s.Expr("deny") != nil }
	return slices.ContainsFunc(settingsIn(own), denies) ||
		slices.ContainsFunc(shared, func(r *Rule) bool { return denies(r.Settings) && !r.excepts(m) })
}

// applyDeny finds the deny of a method and checks it. The method has one, which
// answers for all of its limits: its own goes before that of the whole interface.
func (b *Builder) applyDeny(w *Wrapper, m *Method, rules []*Rule, scope *expr.Scope) {
	var found *directive.Value
	shared := false
	for _, r := range rules {
		v := r.Expr("deny")
		switch {
		case v == nil:
		case found == nil || shared && !w.IsShared(r):
			found, shared = v, w.IsShared(r)
		case v.Text != found.Text:
			b.Report.At(v.Pos, "deny: a refused call of %s cannot return both %s and %s: one line's deny answers for all limits of the method, so keep one", m.Name, found.Text, v.Text).Over(v.Text)
		}
	}
	if found == nil {
		return
	}
	remedy := "call a function that gives the same"
	if shared {
		remedy += ", add except=" + m.Name + ", or write a deny of its own for " + m.Name
	}
	m.Deny = scope.Call("deny", *found, m.Refused(), remedy)
}
