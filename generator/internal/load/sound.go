package load

import (
	"go/token"
	"go/types"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"golang.org/x/tools/go/packages"
)

// TypeOf returns the object of the interface to wrap. For a concrete type
// whose interface is not known yet it is the type's own.
func TypeOf(decl *directive.Decl, pkg *types.Package) *types.TypeName {
	obj, ok := pkg.Scope().Lookup(decl.InterfaceName()).(*types.TypeName)
	if decl.Concrete != nil && (decl.Bare || !ok || !gotypes.IsSound(obj.Type())) {
		obj, _ = pkg.Scope().Lookup(decl.Spec.Name.Name).(*types.TypeName)
	}
	return obj
}

// IsSound reports whether every type that the interface needs is valid.
func IsSound(decl *directive.Decl, pkg *types.Package) bool {
	obj := TypeOf(decl, pkg)
	if obj == nil {
		return true // it belongs to another package of the directory
	}
	if named, ok := obj.Type().(*types.Named); ok && decl.Concrete != nil && !types.IsInterface(named) {
		return gotypes.IsSound(gotypes.MethodsOf(named))
	}
	return gotypes.IsSound(obj.Type())
}

// isAffected reports whether errors of a package reach an interface to wrap:
// one stands in its declaration, or a type it needs is not valid.
func isAffected(p *packages.Package, d *dir, fset *token.FileSet) bool {
	for _, src := range d.sources {
		for _, decl := range src.Decls {
			from, to := fset.Position(decl.Spec.Pos()), fset.Position(decl.Spec.End())
			for _, e := range p.Errors {
				if at := parsePosition(e.Pos); decl.Concrete == nil && at.Filename == src.Path && from.Line <= at.Line && at.Line <= to.Line {
					return true
				}
			}
			if !IsSound(decl, p.Types) {
				return true
			}
		}
	}
	return false
}
