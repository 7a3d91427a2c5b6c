package model

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// findUnlimited finds the methods that hand out what their interface is about
// without limits, such as WithTx(tx) *Queries.
func (w *Wrapper) findUnlimited(f *File) {
	iface := w.interfaceIn(f.Pkg.Types)
	if iface == nil || iface.NumMethods() == 0 {
		return
	}
	for _, m := range w.Methods {
		// A type that has all methods by accident is hardly possible: this method,
		// which hands it out, is one of them.
		find := func(t types.Type, within bool) {
			if m.unlimited == "" && types.Implements(t, iface) && !gotypes.IsTypeParam(t) && !w.isWrapper(t, f.Pkg.Types) {
				m.unlimited, m.within = types.TypeString(t, types.RelativeTo(f.Pkg.Types)), within
			}
		}
		inside := func(t types.Type) { find(t, true) } // of a slice, a sequence or a callback
		for v := range m.Type.Results().Variables() {
			find(v.Type(), false)
			gotypes.EachType(v.Type(), inside)
		}
		for v := range m.Type.Params().Variables() {
			if callback, ok := v.Type().Underlying().(*types.Signature); ok {
				for v := range callback.Params().Variables() {
					gotypes.EachType(v.Type(), inside)
				}
			}
		}
	}
}

// interfaceIn returns the interface that is wrapped, or that of the concrete
// type's methods, or nil if it is not in the package.
func (w *Wrapper) interfaceIn(p *types.Package) *types.Interface {
	obj, ok := p.Scope().Lookup(w.Name).(*types.TypeName)
	if !ok {
		return nil
	}
	if iface, ok := obj.Type().Underlying().(*types.Interface); ok {
		return iface
	}
	if named, ok := obj.Type().(*types.Named); ok {
		return gotypes.MethodsOf(named)
	}
	return nil
}

// isWrapper reports whether a type is the wrapper itself.
func (w *Wrapper) isWrapper(t types.Type, p *types.Package) bool {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() == p && named.Obj().Name() == w.TypeName
}

// warnUnlimited warns of methods that hand out what is not limited: calls of it
// pass by the wrapper. Off above such a method says that this is meant, and so
// does a limit of its own, which is one on what it hands out.
func (b *Builder) warnUnlimited(f *File, w *Wrapper) {
	for _, m := range w.Methods {
		if m.unlimited == "" || m.explicit && len(w.Decl.Methods[m.Name]) > 0 {
			continue
		}
		pos := w.Decl.Spec.Name.Pos()
		if m.explicit && f.Syntax == f.Source.Syntax && m.pos.IsValid() { // not rewritten by cgo
			pos = m.pos
		}
		remedy := "write " + directive.Prefix + "off above the method if that is meant"
		if ast.IsGenerated(sourceOf(f, w, pos).Syntax) { // nothing that is written there lasts
			remedy = "limit an interface of your own that has no " + m.Name
		}
		verb, wrapped := "returns", w.Constructor+"(x."+m.Name+"(…), limiter)"
		if m.within {
			verb = "hands out"
		}
		if m.within || len(m.Results) > 1 {
			wrapped = w.Constructor + "(…, limiter)" // a call with several results is no argument
		}
		d := b.Report.Warn(diag.NotWrapped, pos, "%s %s a %s without limits: wrap it, as in %s, or %s", m.Name, verb, m.unlimited, wrapped, remedy)
		if pos == m.pos {
			d.Over(m.Name)
		}
	}
}

// posOf returns where a method is declared if that is a file of the package.
func posOf(fn *types.Func, p *types.Package) token.Pos {
	if fn.Pkg() != p {
		return token.NoPos
	}
	return fn.Pos()
}
