package load

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
)

// A variant is a method of a concrete type in a file that is not built wherever the
// file is that declares the type.
type variant struct {
	fn   *ast.FuncDecl
	file string
	pos  token.Position
	here bool // the file belongs to this build
}

// checkConstraints reports methods of concrete types that do not exist in every
// build of the type, or have directives in some only: the file that is generated
// for the type would not be the same, and not compile, everywhere.
func (p *Program) checkConstraints(d *dir, declared map[string][]*directive.Concrete) {
	if len(declared) == 0 {
		return
	}
	fset := token.NewFileSet()
	files, contents := d.parseAll(fset, slices.Concat(d.files, d.ignored))
	for typePath, concrete := range declared {
		own := output.Constraint(typePath, contents[typePath])
		for _, t := range concrete {
			variants := map[string][]variant{}
			for path, file := range files {
				if file.Name.Name != t.Pkg || output.Constraint(path, contents[path]) == own {
					continue
				}
				for _, decl := range file.Decls {
					if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.IsExported() && t.Owns(fn) {
						v := variant{fn, path, fset.Position(fn.Name.Pos()), slices.Contains(d.files, filepath.Base(path))}
						variants[fn.Name.Name] = append(variants[fn.Name.Name], v)
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(variants)) {
				all := variants[name]
				slices.SortFunc(all, func(a, b variant) int { return cmp.Compare(a.file, b.file) })
				p.checkVariants(t.Name, name, typePath, all)
			}
		}
	}
}

// checkVariants reports what is wrong with the variants of one method.
func (p *Program) checkVariants(typeName, method, typePath string, all []variant) {
	home := filepath.Base(typePath)
	here := 0
	for _, v := range all {
		if v.here {
			here++
		}
		if directive.HasDirective(v.fn.Doc) {
			p.report.AtPosition(v.pos, "method %s of %s has a directive in %s, which is not built wherever %s is, so what is generated for %s would differ: "+
				"declare %s under the same build constraints, or move the method to a file without any", method, typeName, filepath.Base(v.file), home, home, typeName)
			return
		}
	}
	first := all[0]
	if here == 0 || here == len(all) {
		p.report.AtPosition(first.pos, "method %s of %s is declared in %s only, which is not built wherever %s is, so the interface generated for %s would differ: "+
			"declare the method in every build, make it unexported, or limit an interface of your own", method, typeName, filepath.Base(first.file), home, typeName)
		return
	}
	for _, v := range all[1:] {
		if types.ExprString(v.fn.Type) != types.ExprString(first.fn.Type) {
			p.report.AtPosition(v.pos, "method %s of %s has another signature in %s, so what is generated for %s would differ from build to build: write %s in both",
				method, typeName, filepath.Base(first.file), home, types.ExprString(first.fn.Type))
		}
	}
}

// parseAll parses files of a directory, generated ones left out.
func (d *dir) parseAll(fset *token.FileSet, names []string) (files map[string]*ast.File, contents map[string][]byte) {
	files, contents = map[string]*ast.File{}, map[string][]byte{}
	for _, name := range names {
		path := filepath.Join(d.dir, name)
		content, err := os.ReadFile(path)
		if err != nil || output.IsOurs(content) {
			continue
		}
		if file, err := parser.ParseFile(fset, path, content, parser.ParseComments|parser.SkipObjectResolution); err == nil {
			files[path], contents[path] = file, content
		}
	}
	return files, contents
}

// scanIgnored reads the files that build constraints exclude. It finds those from which
// wrappers are generated in another build, and returns the lines that run rategen.
func (p *Program) scanIgnored(d *dir) (lines []generateLine) {
	for _, name := range d.ignored {
		path := filepath.Join(d.dir, name)
		content, err := os.ReadFile(path)
		if err != nil || output.IsClearlyOurs(content) {
			continue
		}
		lines = append(lines, p.generateLines(d, name, content)...)
		if bytes.Contains(content, []byte(directive.Prefix)) {
			d.excluded = append(d.excluded, path)
			p.report.Note(p.report.Short(path) + ": skipped, build constraints exclude it: set GOOS, GOARCH or -tags to generate for it")
		}
	}
	return lines
}

// keepExcluded keeps what is generated for excluded files.
func (p *Program) keepExcluded(d *dir, s *scan) {
	if len(d.excluded) == 0 {
		return
	}
	// A type may be declared in another file than its methods with directives.
	fset := token.NewFileSet()
	all, _ := d.parseAll(fset, slices.Concat(d.files, d.ignored))
	limited := map[directive.TypeID]bool{}
	for _, path := range d.excluded {
		if file := all[path]; file != nil {
			directive.AddLimitedTypes(file, limited)
		}
	}
	paths := slices.Sorted(maps.Keys(all))
	files := make([]*ast.File, len(paths))
	for i, path := range paths {
		files[i] = all[path]
	}
	concrete := directive.ConcreteTypes(limited, files, paths)
	for _, path := range d.excluded {
		if file := all[path]; file != nil && len(concrete[path]) == 0 {
			src := directive.Read(fset, file, path, func(token.Pos, string, ...any) *diag.Diagnostic { return &diag.Diagnostic{} })
			if len(src.Decls) > 0 {
				d.elsewhere = append(d.elsewhere, path)
			}
		}
	}
	for path := range concrete {
		d.excluded, d.elsewhere = append(d.excluded, path), append(d.elsewhere, path)
	}
	if !d.movesOut() {
		for _, path := range d.excluded {
			s.wanted[naming.OutputFile(path)] = true
		}
	}
}
