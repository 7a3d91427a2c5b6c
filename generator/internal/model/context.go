package model

import (
	"cmp"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// Context returns the first parameter of type context.Context, or nil.
func (m *Method) Context() *expr.Param {
	for _, p := range m.Params {
		if gotypes.IsContextType(p.Type) {
			return p
		}
	}
	return nil
}

// PassesContext reports whether a call's context is its parameter [Method.Context].
func (m *Method) PassesContext() bool { return m.Ctx == nil && m.Context() != nil }

// HasContext reports whether calls bring a context.
func (m *Method) HasContext() bool { return m.Ctx != nil || m.Context() != nil }

// NeedsBackground reports whether a call may be without a context.
func (m *Method) NeedsBackground() bool {
	return len(m.Limits) > 0 && !m.PassesContext() && (m.Ctx == nil || len(m.Ctx.Lower(expr.Facts{}).Steps) > 0)
}

// applyContext finds the context of a limited method's calls: the one that its
// directives name, its own before those of the whole interface, else the first
// parameter of type context.Context, else the first parameter that brings one
// in another way.
func (b *Builder) applyContext(m *Method, shared, own []*Rule, scope *expr.Scope) {
	named := b.namedContext(m, own)
	if named == nil {
		named = b.namedContext(m, shared)
	}
	switch {
	case len(m.Limits) == 0:
	case named != nil:
		m.Ctx = scope.Context(*named, &m.Signature)
	case m.Context() == nil:
		for i := 0; i < len(m.Params) && m.Ctx == nil; i++ {
			m.Ctx = scope.ContextOf(i, &m.Signature)
		}
	}
	b.checkSoft(m)
}

// checkSoft reports a limit in soft mode on a method that cannot be told.
func (b *Builder) checkSoft(m *Method) {
	for _, l := range m.Limits {
		if l.Rule.IsSoft() && !m.PassesContext() {
			b.Report.At(l.Rule.Place("mode"), "mode: soft tells a call by its context that it is over the limit, and %s has no parameter of type context.Context that could be passed on: add one and leave ctx out, or write mode=shadow", m.Name).Mark("soft")
		}
	}
}

// namedContext returns the context that rules name, or nil. It reports a second
// one.
func (b *Builder) namedContext(m *Method, rules []*Rule) *directive.Value {
	var named *directive.Value
	for _, r := range rules {
		v := r.Expr("ctx")
		if v == nil {
			continue
		}
		if named == nil {
			named = v
		} else if named.Text != v.Text {
			b.Report.At(v.Pos, "ctx: a call of %s has one context, and another directive names %s: remove one", m.Name, named.Text).Mark(v.Text)
		}
	}
	return named
}

// warnWait warns of a call that waits for its turn and has no context, so that
// it waits though its caller has gone.
func (b *Builder) warnWait(f *File, w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			if !l.Rule.Waits() || m.PassesContext() || m.Ctx != nil || warned[l.Rule] {
				continue
			}
			warned[l.Rule] = true
			b.Report.Warn(diag.NoContext, l.Rule.Place("wait"), "wait: a call of %s has no context, so it waits on after its caller has gone: "+
				"give the method a context.Context, or name it with ctx=, or write %s if that is meant", m.Name, background(sourceOf(f, w, l.Rule.Pos)))
		}
	}
}

// background returns what a directive in a file has to say for a call to have a
// context that never ends.
func background(src *directive.File) string {
	for _, i := range src.Imports {
		if i.Path == "context" {
			return "ctx=" + cmp.Or(i.Name, "context") + ".Background()"
		}
	}
	for _, i := range src.Syntax.Imports {
		switch {
		case i.Path.Value != `"context"`:
		case i.Name == nil:
			return "ctx=context.Background()"
		case i.Name.Name == ".":
			return "ctx=Background()"
		case i.Name.Name != "_":
			return "ctx=" + i.Name.Name + ".Background()"
		}
	}
	return "ctx=context.Background(), with a line " + directive.Prefix + `import "context" in the file,`
}
