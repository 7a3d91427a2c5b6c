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

// declaredBy returns the interface, or the struct, that declares a method, or nil.
func declaredBy(fn *types.Func) *types.TypeName {
	recv := fn.Signature().Recv()
	if recv == nil {
		return nil
	}
	named := gotypes.Named(recv.Type())
	if named == nil {
		return nil
	}
	if p := named.Obj().Pkg(); p != nil {
		if obj, ok := p.Scope().Lookup(load.StubbedType(named.Obj().Name())).(*types.TypeName); ok {
			return obj // by its interface
		}
	}
	return named.Obj()
}

// warnEmbedded warns of a type that embeds a limited one: the directives of that one
// are for its own wrapper. Methods that the type repeats are its own.
func (b *Builder) warnEmbedded(f *File, w *Wrapper) {
	dropped := map[*types.TypeName][]string{}
	var embedded []*types.TypeName
	for _, m := range w.Methods {
		obj := m.declaredBy
		if m.explicit || obj == nil || obj.Name() == w.Name && obj.Pkg() == f.Pkg.Types || !f.isLimited(obj, m.Name) {
			continue
		}
		if dropped[obj] == nil {
			embedded = append(embedded, obj)
		}
		dropped[obj] = append(dropped[obj], m.Name)
	}
	for _, obj := range embedded {
		name := obj.Name()
		if obj.Pkg() != f.Pkg.Types {
			name = obj.Pkg().Name() + "." + name
		}
		also, repeat := "", "repeat"
		if w.Decl.Concrete != nil {
			also, repeat = "embed that, or ", "declare"
		}
		b.Report.Warn(diag.EmbeddedLimits, w.Decl.Spec.Name.Pos(), "the limits of %s, which %s embeds, hold for its own wrapper and not for %s: %s%s %s in %s, with the directives that are to hold, or with none if that is meant",
			name, w.Name, w.TypeName, also, repeat, strings.Join(dropped[obj], ", "), w.Name)
	}
}

// isLimited reports whether an interface has a limit on a method. Of one of another
// package it is known whether it has a wrapper.
func (f *File) isLimited(obj *types.TypeName, method string) bool {
	if obj.Pkg() != f.Pkg.Types {
		return obj.Pkg() != nil && obj.Pkg().Scope().Lookup(naming.Wrapper(obj.Name())) != nil
	}
	decl := f.limited[obj.Name()]
	if decl == nil {
		return false
	}
	own := decl.Methods[method]
	if slices.ContainsFunc(own, func(d *directive.Directive) bool { return d.Off }) {
		return false
	}
	return len(own) > 0 || slices.ContainsFunc(settingsIn(decl.Own), func(s *directive.Settings) bool {
		return !s.LeavesOut(method)
	})
}
