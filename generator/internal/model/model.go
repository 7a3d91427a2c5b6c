// Package model turns type-checked files with directives into the wrappers that
// are to be written: their methods, the rules declared on them and the limits on
// each call. A model without errors can be written and compiles.
package model

import (
	"go/types"
	"maps"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/generator/internal/parallel"
	"golang.org/x/tools/go/packages"
)

// A File is a source file whose wrappers are ready to be written.
type File struct {
	*load.File
	Wrappers []*Wrapper
	Home     *types.Package  // that the generated file belongs to
	Out      *output.Package // the same, or nil if it is the source file's own
}

// A Builder makes the wrappers of a run.
type Builder struct {
	// Report takes errors and warnings.
	Report *diag.Reporter
	// Out is the package that the wrappers are written to. It is nil if they
	// stand next to their interfaces.
	Out *output.Package
	// ImportWay says how a package imports another one, or "" if it does not.
	// It may be nil if Out is.
	ImportWay func(from, to string) string
}

// Build checks the interfaces of files and their limits, and returns those
// files that can have wrappers.
func (b *Builder) Build(files []*load.File) []*File {
	// Variables of one package must have different names.
	var packages [][]*load.File
	for _, f := range files {
		i := slices.IndexFunc(packages, func(p []*load.File) bool { return p[0].Pkg == f.Pkg })
		if i < 0 {
			i, packages = len(packages), append(packages, nil)
		}
		packages[i] = append(packages[i], f)
	}
	built := make([][]*File, len(packages))
	parallel.Do(len(packages), func(i int) { built[i] = b.buildPackage(packages[i]) })
	return slices.Concat(built...)
}

// buildPackage builds the files of one package.
func (b *Builder) buildPackage(files []*load.File) []*File {
	var built []*File
	var vars map[string]bool // the names declared so far
	for _, file := range files {
		f := &File{File: file, Home: file.Pkg.Types, Out: b.Out}
		if b.Out != nil {
			f.Home = b.Out.Types
		}
		if !b.checkOut(f) {
			continue
		}
		if vars == nil {
			vars = f.TakenNames()
		}
		b.buildFile(f, vars)
		built = append(built, f)
	}
	return built
}

// buildFile builds the wrappers of a file. Their variables get names that are
// not taken, and take them.
func (b *Builder) buildFile(f *File, vars map[string]bool) {
	scopes := b.scopes(f)
	for _, decl := range f.Source.Decls {
		w := b.newWrapper(f, decl)
		if w == nil {
			continue
		}
		b.applyLimits(w, scopes, func(base string) string {
			name := naming.Free(base, vars)
			vars[name] = true
			return name
		})
		f.Wrappers = append(f.Wrappers, w)
	}
}

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

// scopes returns a function that tells in which scope the directives of a
// method are checked: that of the file in which they stand.
func (b *Builder) scopes(f *File) func(*Wrapper, *Method) *expr.Scope {
	known := map[*directive.File]*expr.Scope{f.Source: expr.NewScope(f.File, f.Home, b.Report)}
	return func(w *Wrapper, m *Method) *expr.Scope {
		src := f.Source
		if other := w.Decl.Sources[m.Name]; other != nil {
			src = other
		}
		if known[src] == nil {
			known[src] = expr.NewScope(f.Sibling(src), f.Home, b.Report)
		}
		return known[src]
	}
}
