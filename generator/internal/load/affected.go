package load

import (
	"go/token"

	"golang.org/x/tools/go/packages"
)

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
