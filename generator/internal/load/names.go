package load

import (
	"go/ast"
	"go/token"
	"slices"

	"github.com/rategen/rategen/generator/internal/output"
)

// Names are those that the files of a package have at package level, its test files and
// those of other builds included: what is generated is the same in every build.
type Names struct {
	Declared map[string]token.Pos
	Imported map[string]bool // by one of the files
}

// NamesOf returns the names in files.
func NamesOf(files []*ast.File) *Names {
	names := &Names{map[string]token.Pos{}, map[string]bool{}}
	for _, f := range files {
		for _, id := range output.DeclaredNames(f) {
			names.Declared[id.Name] = id.Pos()
		}
		for _, name := range output.ImportedNames(f) {
			names.Imported[name] = true
		}
	}
	return names
}

// filesOf returns the files in a directory that belong to a package, in any build.
func (d *dir) filesOf(pkg string) []*ast.File {
	return slices.DeleteFunc(slices.Concat(d.plain, d.inside, d.outside, d.otherBuilds), func(f *ast.File) bool { return f.Name.Name != pkg })
}
