package model

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// warnNilable warns of limits whose key some calls may not have, since a pointer on the way to
// it is nil, unless the directive says what becomes of these calls.
func (b *Builder) warnNilable(f *File, w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			x, t := m.invalidKey(l, f.Pkg.Types)
			if t == nil || l.Rule.Has("invalid") || warned[l.Rule] {
				continue
			}
			warned[l.Rule] = true
			becomes := "such calls share one budget, and may starve each other"
			if x == l.Max {
				becomes = "such calls are refused, since nothing says how many are admitted"
			}
			b.Report.Warn(diag.NilableKey, x.Source.Pos, "%s: a call has no key where %s: %s; add invalid=refuse or invalid=admit, or invalid=share if that is meant",
				x.Option, t.Reason, becomes).Mark(x.Source.Tail(0))
		}
	}
}

// invalidKey returns an expression of a limit that some calls may not have a value for, and so
// have no key, and why.
func (m *Method) invalidKey(l *Limit, home *types.Package) (*expr.Expr, *expr.Test) {
	var facts expr.Facts
	all := []*expr.Expr{l.Max}
	for _, p := range slices.Concat(l.Parts, l.Share) {
		all = append(all, p.Expr)
	}
	all = append(all, l.Weight, l.Cost, l.Zone, l.Anchor)
	if l.When != nil {
		if t := m.mayFail(l.When, facts, home); t != nil {
			return l.When, t
		}
		_, facts = l.When.Cut(false)
	}
	for _, x := range all {
		if x == nil {
			continue
		}
		if t := m.mayFail(x, facts, home); t != nil {
			return x, t
		}
	}
	return nil, nil
}

// mayFail returns a test that an expression may not pass where some facts hold, or nil.
func (m *Method) mayFail(x *expr.Expr, facts expr.Facts, home *types.Package) *expr.Test {
	for _, t := range expr.Tests(x.Lower(facts).Steps) {
		if t.Index != "" || !m.isGiven(x, t, home) {
			return t
		}
	}
	return nil
}

// isMessage reports whether a type is one of protocol buffers, of a new generator or an old one.
func isMessage(t types.Type) bool {
	for _, name := range [...]string{"ProtoReflect", "ProtoMessage"} {
		if method, _, _ := types.LookupFieldOrMethod(t, false, nil, name); method != nil {
			return true
		}
	}
	return false
}

// isRequest reports whether a parameter is what frameworks hand to a method that they call, and never
// nil: a pointer to a struct, the first parameter behind the context, of a method that returns an error.
// Either the method answers it with a pointer, or the struct is the framework's own, as the record of a
// consumer is.
func (m *Method) isRequest(p *expr.Param, home *types.Package) bool {
	first := 0
	if m.Context() != nil && m.all[0] == m.Context() {
		first = 1
	}
	request, ok := types.Unalias(p.Type).(*types.Pointer)
	if !ok || !m.ReturnsError() || len(m.all) <= first || m.all[first] != p {
		return false
	}
	if _, ok := request.Elem().Underlying().(*types.Struct); !ok {
		return false
	}
	results := m.Type.Results()
	if _, answers := results.At(0).Type().Underlying().(*types.Pointer); answers && first == 1 && results.Len() > 1 {
		return true
	}
	named, ok := types.Unalias(request.Elem()).(*types.Named)
	return ok && isForeign(named.Obj().Pkg(), home)
}

// isGiven reports whether what a test wants not to be nil never is: what brings the call's
// context, and what servers hand to a method.
func (m *Method) isGiven(x *expr.Expr, t *expr.Test, home *types.Package) bool {
	if p, ok := t.Type.Underlying().(*types.Pointer); ok {
		if gotypes.IsNamed(p.Elem(), "net/http", "Request") || gotypes.IsNamed(p.Elem(), "net/url", "URL") {
			return true
		}
	}
	subject := ast.Unparen(t.Subject)
	if s, ok := subject.(*ast.SelectorExpr); ok && s.Sel.Name == "Msg" {
		subject = ast.Unparen(s.X)
	}
	id, ok := subject.(*ast.Ident)
	if !ok || x.Params[id] == nil {
		return false
	}
	p := x.Params[id]
	if m.Ctx != nil {
		for _, own := range m.Ctx.Params {
			if own == p {
				return true
			}
		}
	}
	if isMessage(p.Type) || m.isRequest(p, home) || p == m.Context() || gotypes.IsNamed(p.Type, "net/http", "ResponseWriter") {
		return true
	}
	request, ok := types.Unalias(p.Type).(*types.Pointer)
	return ok && gotypes.IsNamed(request.Elem(), "connectrpc.com/connect", "Request")
}
