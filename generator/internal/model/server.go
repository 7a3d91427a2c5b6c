package model

import (
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/gotypes"
)

// A server of gRPC, as protoc-gen-go-grpc generates its interface FooServer, has
// an unexported method, so that other packages implement it by embedding alone:
// UnimplementedFooServer, which has all methods, or UnsafeFooServer, an interface
// of the unexported method. A wrapper embeds the second, and none of the methods
// that it has to pass on can be missed.
const (
	mustEmbed     = "mustEmbedUnimplemented"
	unsafeService = "Unsafe"
	unimplemented = "Unimplemented"
)

// embed embeds the interface of an unexported method of another package, if it is
// one that a server must have. Nobody calls the method.
func (w *Wrapper) embed(fn *types.Func, home *types.Package) bool {
	service, ok := strings.CutPrefix(fn.Name(), mustEmbed)
	if !ok || fn.Pkg() == home || !gotypes.MayImport(home.Path(), fn.Pkg().Path()) {
		return false
	}
	obj, iface := interfaceNamed(fn.Pkg(), unsafeService+service)
	if iface == nil || iface.NumMethods() != 1 || iface.Method(0).Id() != fn.Id() || !types.Identical(iface.Method(0).Type(), fn.Type()) ||
		slices.ContainsFunc(w.Embeds, func(before *types.TypeName) bool { return before.Name() == obj.Name() }) {
		return false
	}
	w.Embeds = append(w.Embeds, obj)
	return true
}

// servesOf returns the interfaces that a concrete type implements by embedding
// what their packages generate for that: pb.GreeterServer if it embeds
// pb.UnimplementedGreeterServer or pb.UnsafeGreeterServer. Its wrapper is to implement them too, and so
// passes on the methods that the type has not written itself.
func servesOf(obj types.Object, home *types.Package) []*types.TypeName {
	if obj == nil {
		return nil // the type belongs to another package of the directory
	}
	struc, ok := obj.Type().Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	var served []*types.TypeName
	for field := range struc.Fields() {
		t := field.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		named, ok := types.Unalias(t).(*types.Named)
		if !ok || !field.Embedded() || named.Obj().Pkg() == nil {
			continue
		}
		name, ok := strings.CutPrefix(named.Obj().Name(), unimplemented)
		if !ok {
			name, ok = strings.CutPrefix(named.Obj().Name(), unsafeService)
		}
		found, iface := interfaceNamed(named.Obj().Pkg(), name)
		if ok && iface != nil && types.Implements(types.NewPointer(obj.Type()), iface) && gotypes.MayImport(home.Path(), found.Pkg().Path()) {
			served = append(served, found)
		}
	}
	return served
}

// interfaceNamed returns an exported interface of a package that has no type
// parameters, or nil.
func interfaceNamed(p *types.Package, name string) (*types.TypeName, *types.Interface) {
	obj, ok := p.Scope().Lookup(name).(*types.TypeName)
	if !ok || !obj.Exported() {
		return nil, nil
	}
	if named, ok := obj.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		return nil, nil
	}
	iface, ok := obj.Type().Underlying().(*types.Interface)
	if !ok || !iface.IsMethodSet() {
		return nil, nil
	}
	return obj, iface
}

// withServed adds the methods of the interfaces that a concrete type serves to
// those that it has itself.
func (w *Wrapper) withServed(methods []*types.Func) []*types.Func {
	for _, obj := range w.Serves {
		for fn := range obj.Type().Underlying().(*types.Interface).Methods() {
			if !slices.ContainsFunc(methods, func(own *types.Func) bool { return own.Id() == fn.Id() }) {
				methods = append(methods, fn)
			}
		}
	}
	return methods
}

// IsServed reports whether a method belongs to an interface that a concrete type
// serves.
func (w *Wrapper) IsServed(m *Method) bool {
	return slices.ContainsFunc(w.Serves, func(obj *types.TypeName) bool {
		for fn := range obj.Type().Underlying().(*types.Interface).Methods() {
			if fn.Name() == m.Name {
				return true
			}
		}
		return false
	})
}
