package model

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/naming"
)

// findUnlimited finds the methods that hand out what has limits without them: what their own
// interface is about, such as WithTx(tx) *Queries, or another one.
func (w *Wrapper) findUnlimited(f *File) {
	iface := w.interfaceIn(f.Pkg.Types)
	if iface == nil || iface.NumMethods() == 0 {
		return
	}
	for _, m := range w.Methods {
		find := func(t types.Type, within bool) {
			if m.unlimited != "" || gotypes.IsTypeParam(t) || w.isWrapper(t, f.Pkg.Types) {
				return
			}
			// A type that has all methods by accident is hardly possible: this method,
			// which hands it out, is one of them.
			m.wrapIn = w.Constructor
			if !types.Implements(t, iface) {
				m.wrapIn = f.constructorOf(t)
			}
			if m.wrapIn != "" {
				m.unlimited, m.within = types.TypeString(t, f.qualify), within
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

// qualify returns what stands before the names of a package in the file.
func (f *File) qualify(p *types.Package) string {
	if p == f.Pkg.Types {
		return ""
	}
	return p.Name()
}

// constructorOf returns the name of the function that limits values of a type, as directives
// declare it or another package has it, or "".
func (f *File) constructorOf(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	} else if !types.IsInterface(t) {
		return ""
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	if named.Obj().Pkg() == f.Pkg.Types {
		if decl := f.limited[named.Obj().Name()]; decl != nil {
			return decl.ConstructorName()
		}
		return ""
	}
	constructor := naming.Constructor(naming.Wrapper(named.Obj().Name()))
	if _, ok := named.Obj().Pkg().Scope().Lookup(constructor).(*types.Func); !ok {
		return ""
	}
	return named.Obj().Pkg().Name() + "." + constructor
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
		verb, wrapped := "returns", m.wrapIn+"(x."+m.Name+"(…), limiter)"
		if m.within {
			verb = "hands out"
		}
		if m.within || len(m.Results) > 1 {
			wrapped = m.wrapIn + "(…, limiter)" // a call with several results is no argument
		}
		d := b.Report.Warn(diag.NotWrapped, pos, "%s %s a %s without limits: wrap it, as in %s, or %s", m.Name, verb, m.unlimited, wrapped, remedy)
		if pos == m.pos {
			d.Mark(m.Name)
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
