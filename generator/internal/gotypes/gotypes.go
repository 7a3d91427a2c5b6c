// Package gotypes answers questions about types that go/types does not: which
// names writing a type needs, whether all of them are valid, and which packages
// may import which.
package gotypes

import (
	"go/types"
	"path"
	"strings"
)

// EachName calls visit for every type name that writing t needs.
func EachName(t types.Type, visit func(*types.TypeName)) {
	EachType(t, func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			visit(t.Obj())
		case *types.Alias:
			visit(t.Obj())
		case *types.Basic:
			if obj, ok := types.Universe.Lookup(t.Name()).(*types.TypeName); ok {
				visit(obj)
			}
		}
	})
}

// EachType calls visit for every type that writing t needs, t included.
func EachType(t types.Type, visit func(types.Type)) {
	eachType(t, map[types.Type]bool{}, visit)
}

func eachType(t types.Type, seen map[types.Type]bool, visit func(types.Type)) {
	if seen[t] {
		return
	}
	seen[t] = true
	visit(t)
	each := func(t types.Type) { eachType(t, seen, visit) }
	switch t := t.(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			each(a)
		}
	case *types.Alias:
		for a := range t.TypeArgs().Types() {
			each(a)
		}
	case *types.Pointer:
		each(t.Elem())
	case *types.Slice:
		each(t.Elem())
	case *types.Array:
		each(t.Elem())
	case *types.Chan:
		each(t.Elem())
	case *types.Map:
		each(t.Key())
		each(t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			each(v.Type())
		}
		for v := range t.Results().Variables() {
			each(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			each(f.Type())
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			each(m.Type())
		}
		for e := range t.EmbeddedTypes() {
			each(e)
		}
	case *types.Union:
		for e := range t.Terms() {
			each(e.Type())
		}
	}
}

// IsSound reports whether every type that a wrapper of t has to write is valid.
func IsSound(t types.Type) bool {
	sound := true
	see := func(t types.Type) {
		EachType(t, func(t types.Type) { sound = sound && t != types.Typ[types.Invalid] })
	}
	switch t := t.(type) {
	case *types.Named:
		for p := range t.TypeParams().TypeParams() {
			see(p.Constraint())
		}
	case *types.Alias:
		for p := range t.TypeParams().TypeParams() {
			see(p.Constraint())
		}
	}
	see(t.Underlying())
	if !sound {
		return false
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return true // not an interface: reported as such
	}
	for e := range iface.EmbeddedTypes() {
		if _, ok := e.Underlying().(*types.Interface); ok && !IsSound(e) {
			return false
		}
	}
	for m := range iface.Methods() {
		see(m.Type())
	}
	return sound
}

// Is reports whether a type is made of a kind of types, such as *types.Map.
func Is[K types.Type](t types.Type) bool {
	_, ok := t.Underlying().(K)
	return ok
}

// IsBasic reports whether a type is made of a basic one with a property.
func IsBasic(t types.Type, property types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&property != 0
}

// Named returns the type with a name that t, or what it points to, is, or nil.
func Named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, _ := types.Unalias(t).(*types.Named)
	return named
}

// IsNamed reports whether a type is the named one of a package.
func IsNamed(t types.Type, pkgPath, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkgPath
}

// IsTypeParam reports whether a type is a type parameter.
func IsTypeParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

// MethodsOf returns the interface of a concrete type's exported methods, in terms
// of the type parameters that the type declares: its methods may call them
// something else.
func MethodsOf(t *types.Named) *types.Interface {
	var methods []*types.Func
	for m := range Instance(t).Methods() {
		sig := m.Signature()
		if m.Exported() {
			sig = types.NewSignatureType(nil, nil, nil, sig.Params(), sig.Results(), sig.Variadic())
			methods = append(methods, types.NewFunc(m.Pos(), m.Pkg(), m.Name(), sig))
		}
	}
	return types.NewInterfaceType(methods, nil).Complete()
}

// Instance returns a type with its own type parameters as arguments.
func Instance(t *types.Named) *types.Named { return InstanceOf(t, t.TypeParams()) }

// InstanceOf returns a type with type parameters as arguments.
func InstanceOf(t *types.Named, args *types.TypeParamList) *types.Named {
	var params []types.Type
	for p := range args.TypeParams() {
		params = append(params, p)
	}
	if len(params) > 0 {
		if own, err := types.Instantiate(nil, t, params, false); err == nil {
			return own.(*types.Named)
		}
	}
	return t
}

// MayImport applies the rule on internal packages. Packages of the standard
// library and of other modules meet it already when they are imported.
func MayImport(from, target string) bool {
	parent := ""
	i := strings.LastIndex(target, "/internal/")
	switch {
	case i >= 0:
		parent = target[:i]
	case strings.HasSuffix(target, "/internal"):
		parent = path.Dir(target)
	case strings.HasPrefix(target, "internal/"), target == "internal":
		return false
	default:
		return true
	}
	from = strings.TrimSuffix(from, "_test")
	return from == parent || strings.HasPrefix(from, parent+"/")
}
