package load

import (
	"bytes"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/output"
)

// findTaken reports names that are to be generated and that the package declares
// already. The stubs of what cannot be generated are taken away, so that the rest
// can be checked.
func (d *dir) findTaken(fset *token.FileSet, report diag.Func) {
	declared := map[string]map[string]bool{} // by package: tests may have one of their own
	namesOf := func(file *ast.File) map[string]bool {
		name := file.Name.Name
		if declared[name] == nil {
			declared[name] = map[string]bool{}
		}
		return declared[name]
	}
	for _, file := range slices.Concat(d.plain, d.inside, d.outside) {
		names := namesOf(file)
		for _, name := range output.DeclaredNames(&ast.File{Decls: d.withoutStubs(file)}) {
			names[name] = true
		}
	}
	for _, src := range d.sources {
		if len(d.overlay[src.Path].decls) == 0 {
			continue // its wrappers go elsewhere
		}
		for i, decl := range src.Decls {
			if !decl.Claim(namesOf(src.Syntax), report) {
				d.taken = true
				d.removeStub(fset, src, i)
			}
		}
	}
}

// withoutStubs returns the declarations of a file as it is on disk.
func (d *dir) withoutStubs(file *ast.File) []ast.Decl {
	for _, s := range d.overlay {
		if s.ast == file && len(s.decls) > 0 {
			return slices.DeleteFunc(slices.Clone(file.Decls), func(decl ast.Decl) bool { return slices.Contains(s.decls, decl) })
		}
	}
	return file.Decls
}

// removeStub removes what stands for the i-th wrapper of a file.
func (d *dir) removeStub(fset *token.FileSet, src *directive.File, i int) {
	s := d.overlay[src.Path]
	of := func(decl ast.Decl) bool {
		return slices.Contains(s.decls, decl) && s.ifaceAt(fset.Position(decl.Pos()).Line) == i && !declares(decl, limiterName(src.Path))
	}
	src.Syntax.Decls = slices.DeleteFunc(src.Syntax.Decls, of)
	lines := bytes.Split(s.content, []byte("\n"))
	end := len(lines)
	if i+1 < len(s.lines) {
		end = s.lines[i+1] - 1
	}
	for k := s.lines[i] - 1; k < end; k++ {
		if !strings.Contains(string(lines[k]), "type "+limiterName(src.Path)+" ") {
			lines[k] = nil
		}
	}
	s.content = bytes.Join(lines, []byte("\n"))
	d.overlay[src.Path] = s
}

func declares(decl ast.Decl, name string) bool {
	return slices.Contains(output.DeclaredNames(&ast.File{Decls: []ast.Decl{decl}}), name)
}
