package model

import (
	"maps"
	"slices"

	"golang.org/x/tools/go/packages"
)

// TakenNames returns every name that a generated declaration must not have.
func (f *File) TakenNames() map[string]bool {
	taken := map[string]bool{}
	names := packageNames(f.Pkg)
	if f.Out != nil {
		names = slices.Collect(maps.Keys(f.Out.Names))
	}
	for _, name := range names {
		taken[name] = true
	}
	return taken
}

// packageNames returns every name that a package-level declaration must not
// have: the package's own and those that one of its files imports.
func packageNames(p *packages.Package) []string {
	names := p.Types.Scope().Names()
	for _, file := range p.Syntax {
		if s := p.TypesInfo.Scopes[file]; s != nil {
			names = append(names, s.Names()...)
		}
	}
	return names
}
