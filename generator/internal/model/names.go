package model

import (
	"go/token"
	"go/types"
	"iter"
	"maps"
	"slices"

	"github.com/rategen/rategen/generator/internal/gotypes"
)

// Declares reports whether the package that the generated file belongs to declares a name,
// in a test or in another build perhaps.
func (f *File) Declares(name string) bool {
	if f.Out != nil {
		return f.Out.Names[name] != ""
	}
	return f.Names.Declared[name].IsValid() || f.Home.Scope().Lookup(name) != nil
}

// hiddenType returns the name of a type of Go itself that t needs and the package declares
// otherwise, or "".
func (f *File) hiddenType(t types.Type) string {
	hidden := ""
	gotypes.EachName(t, func(obj *types.TypeName) {
		if obj.Pkg() == nil && f.Declares(obj.Name()) {
			hidden = obj.Name()
		}
	})
	return hidden
}

// PosOf returns where the source's own package declares a name, if that is known.
func (f *File) PosOf(name string) token.Pos {
	if f.Out != nil {
		return token.NoPos
	}
	return f.Names.Declared[name]
}

// DeclaredNames returns the names that imports of the generated file must not have: they
// may repeat those of other files.
func (f *File) DeclaredNames() map[string]bool {
	taken := map[string]bool{}
	if f.Out != nil {
		take(taken, maps.Keys(f.Out.Names))
		return taken
	}
	take(taken, maps.Keys(f.Names.Declared))
	take(taken, slices.Values(f.Home.Scope().Names()))
	return taken
}

// TakenNames returns every name that a generated declaration must not have: those of
// the package, and those that one of its files imports.
func (f *File) TakenNames() map[string]bool {
	taken := f.DeclaredNames()
	if f.Out != nil {
		maps.Copy(taken, f.Out.Imported)
		return taken
	}
	maps.Copy(taken, f.Names.Imported)
	for _, file := range f.Pkg.Syntax {
		if s := f.Pkg.TypesInfo.Scopes[file]; s != nil {
			take(taken, slices.Values(s.Names()))
		}
	}
	return taken
}

// take adds names to those that are taken.
func take(taken map[string]bool, names iter.Seq[string]) {
	for name := range names {
		taken[name] = true
	}
}
