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
	type names map[string]map[string]bool // by package: tests may have one of their own
	here, elsewhere := names{}, names{}
	of := func(n names, file *ast.File) map[string]bool {
		name := file.Name.Name
		if n[name] == nil {
			n[name] = map[string]bool{}
		}
		return n[name]
	}
	add := func(n names, files []*ast.File) {
		for _, file := range files {
			for _, id := range output.DeclaredNames(&ast.File{Decls: d.withoutStubs(file)}) {
				of(n, file)[id.Name] = true
			}
		}
	}
	add(here, slices.Concat(d.plain, d.inside, d.outside))
	add(elsewhere, d.otherBuilds)
	for _, src := range d.sources {
		if len(d.overlay[src.Path].decls) == 0 {
			continue // its wrappers go elsewhere
		}
		everywhere := output.Constraint(src.Path, d.overlay[src.Path].content) == ""
		for i, decl := range src.Decls {
			free := decl.Claim(of(here, src.Syntax), report)
			if everywhere { // so it meets all files of other builds
				free = decl.Claim(of(elsewhere, src.Syntax), report) && free
			}
			if !free {
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
	return slices.ContainsFunc(output.DeclaredNames(&ast.File{Decls: []ast.Decl{decl}}), func(id *ast.Ident) bool { return id.Name == name })
}
