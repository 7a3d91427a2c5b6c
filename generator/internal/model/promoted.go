package model

import (
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
)

// promoted returns the exported methods that a concrete type has from embedded fields,
// as far as the generated code can declare them. Those of structs of the standard
// library are left out: a mutex is nobody's service, and what a file has differs from
// system to system.
func (w *Wrapper) promoted(obj types.Object, home *types.Package) []*types.Func {
	if obj == nil {
		return nil
	}
	t, ok := obj.Type().(*types.Named)
	if !ok {
		return nil
	}
	own := gotypes.Instance(t)
	var methods []*types.Func
	for sel := range types.NewMethodSet(types.NewPointer(own)).Methods() {
		fn := sel.Obj().(*types.Func)
		if len(sel.Index()) < 2 || !fn.Exported() {
			continue
		}
		recv := fn.Signature().Recv()
		if !types.IsInterface(recv.Type()) && isStandard(fn.Pkg(), home) {
			continue
		}
		if throughWrapper(own, sel.Index()) {
			recv = nil // it is limited as it is
		}
		sig := sel.Type().(*types.Signature)
		sig = types.NewSignatureType(recv, nil, nil, sig.Params(), sig.Results(), sig.Variadic())
		if unreachable(sig, home) == nil && hiddenType(sig, t.TypeParams(), home) == "" && gotypes.IsSound(sig) {
			methods = append(methods, types.NewFunc(fn.Pos(), fn.Pkg(), fn.Name(), sig))
		}
	}
	return methods
}

// throughWrapper reports whether a method is promoted from a wrapper, or by way of one.
func throughWrapper(t types.Type, path []int) bool {
	for _, i := range path[:len(path)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		t = t.Underlying().(*types.Struct).Field(i).Type()
		if named := gotypes.Named(t); named != nil && named.Obj().Pkg() != nil && isWrapperType(named.Obj()) {
			return true
		}
	}
	return false
}

// isWrapperType reports whether a type is a wrapper: it has a constructor that takes a
// limiter.
func isWrapperType(obj *types.TypeName) bool {
	construct, ok := obj.Pkg().Scope().Lookup(naming.Constructor(obj.Name())).(*types.Func)
	if !ok || construct.Signature().Params().Len() != 2 {
		return false
	}
	t := construct.Signature().Params().At(1).Type()
	if stub, ok := t.(*types.Alias); ok {
		return strings.HasPrefix(stub.Obj().Name(), load.StubPrefix)
	}
	p, ok := t.(*types.Pointer)
	return ok && gotypes.IsNamed(p.Elem(), naming.RuntimePath, "Limiter")
}

// isStandard reports whether a package belongs to the standard library: its path has no
// domain, and does not begin like that of a module without one.
func isStandard(p, home *types.Package) bool {
	first, _, _ := strings.Cut(p.Path(), "/")
	own, _, _ := strings.Cut(home.Path(), "/")
	return !strings.Contains(first, ".") && first != own
}

// isForeign reports whether a package is certainly of another module, and not of the standard library: the
// first two elements of its path are not those of its user's.
func isForeign(p, home *types.Package) bool {
	if p == nil || isStandard(p, home) {
		return false
	}
	return !slices.Equal(firstTwo(p.Path()), firstTwo(home.Path()))
}

func firstTwo(path string) []string {
	elements := strings.SplitN(path, "/", 3)
	return elements[:min(2, len(elements))]
}

// warnExtended warns of interfaces that extend an embedded one of another package. What
// is wrapped may be one, and callers may ask for it.
func (b *Builder) warnExtended(f *File, w *Wrapper) {
	iface := w.interfaceIn(f.Pkg.Types)
	if iface == nil || w.Decl.Concrete != nil {
		return
	}
	for t := range iface.EmbeddedTypes() {
		embedded, ok := types.Unalias(t).(*types.Named)
		if !ok || embedded.Obj().Pkg() == nil || embedded.Obj().Pkg() == f.Pkg.Types || isStandard(embedded.Obj().Pkg(), f.Pkg.Types) {
			continue
		}
		p := embedded.Obj().Pkg()
		var names []string
		for _, name := range p.Scope().Names() {
			obj, extended := interfaceNamed(p, name)
			if extended == nil || types.Implements(iface, extended) {
				continue
			}
			embeds := func(t types.Type) bool { return types.Identical(t, embedded) }
			if slices.ContainsFunc(slices.Collect(extended.EmbeddedTypes()), embeds) {
				names = append(names, p.Name()+"."+obj.Name())
			}
		}
		if len(names) == 0 {
			continue
		}
		base := p.Name() + "." + embedded.Obj().Name()
		b.Report.Warn(diag.HiddenMethods, w.Decl.Spec.Name.Pos(), "a %s is no %s, which extends %s, even if what it wraps is one: embed that in %s, or ask the value that you wrap; list the methods of %s in place of embedding it if that is meant",
			w.TypeName, directive.List(names, "and no"), base, w.Name, base)
	}
}
