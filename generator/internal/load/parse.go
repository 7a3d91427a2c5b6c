package load

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/generator/internal/parallel"
)

// Parse reads the directives of the packages, and decides how the type checker
// is to see the files that have some.
func (p *Program) Parse() {
	parallel.Do(len(p.dirs), func(i int) {
		d := p.dirs[i]
		defer p.report.Recover(token.Position{Filename: d.dir}, func() { d.broken = true })
		d.overlay = map[string]stub{}
		s := p.scan(d)
		files := p.readDirectives(d, s)
		if d.clash != "" && len(d.sources) > 0 {
			p.report.AtPosition(token.Position{}, "%s", d.clash)
			d.broken = true
			return
		}
		directive.LinkMethods(files, p.report.At)
		directive.LinkPolicies(files, p.report.At)
		d.policies = withPolicies(files)
		for _, src := range d.policies {
			src.PkgPath = d.path
		}
		for _, src := range files {
			if len(src.Decls) > 0 && !d.movesOut() {
				s.wanted[naming.OutputFile(src.Path)] = true
			}
			p.overlay(d, src, s)
		}
		d.findOrphans(s.wanted)
	})
	p.findLeftGuests()
	p.linkPolicies()
}

// withPolicies returns the files that declare policies or defaults.
func withPolicies(files []*directive.File) []*directive.File {
	return slices.DeleteFunc(slices.Clone(files), func(src *directive.File) bool { return len(src.Policies)+len(src.Defaults) == 0 })
}

// readDirectives parses the files that may have directives, each one once, and
// returns those in which there is something to work on, sorted by path. Where
// methods of concrete types have directives, those are the files that declare
// the types and their other methods, too.
func (p *Program) readDirectives(d *dir, s *scan) []*directive.File {
	parsed := map[string]*ast.File{}
	wanted := map[directive.TypeID]bool{}
	for _, path := range slices.Sorted(maps.Keys(s.contents)) {
		if file := p.parseFile(d, path, s.contents[path]); file != nil {
			parsed[path] = file
			directive.AddLimitedTypes(file, wanted)
		}
	}
	concrete := p.concreteTypes(d, s, parsed, wanted)
	p.checkConstraints(d, concrete)
	var files []*directive.File
	for _, path := range slices.Sorted(maps.Keys(parsed)) {
		src := directive.Read(p.fset, parsed[path], path, p.report.At)
		src.AddConcrete(concrete[path], d.place != nil)
		if len(src.Decls)+len(src.Methods)+len(src.Policies)+len(src.Defaults) > 0 || len(concrete) > 0 {
			d.sources = append(d.sources, src)
		}
		if d.place == nil {
			stubMethods(src.Syntax, concrete, path)
		}
		files = append(files, src)
	}
	return files
}

// parseFile parses a file with its comments. It returns nil if there is an
// error, which it reports.
func (p *Program) parseFile(d *dir, path string, content []byte) *ast.File {
	file, err := parser.ParseFile(p.fset, path, content, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	if list, ok := err.(scanner.ErrorList); ok {
		tf := p.fset.File(file.FileStart)
		for _, e := range list {
			p.report.At(tf.Pos(min(e.Pos.Offset, tf.Size())), "%s", e.Msg)
		}
		d.broken = true
		return nil
	}
	if ast.IsGenerated(file) && output.IsOurs(content) {
		return nil
	}
	return file
}

// concreteTypes finds the declarations and methods of the wanted types in all
// files of a package, and parses the files that have some. It returns the types
// by the file that declares them.
func (p *Program) concreteTypes(d *dir, s *scan, parsed map[string]*ast.File, wanted map[directive.TypeID]bool) map[string][]*directive.Concrete {
	if len(wanted) == 0 {
		return nil
	}
	var files []*ast.File
	var paths []string
	for _, name := range d.files {
		path := filepath.Join(d.dir, name)
		file := parsed[path]
		if file == nil {
			content, err := os.ReadFile(path)
			if err != nil || output.IsOurs(content) {
				continue
			}
			// Most of these files have nothing to do with the types: they stay
			// out of the file set.
			if file, err = parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution); err != nil {
				continue
			}
		}
		files, paths = append(files, file), append(paths, path)
	}
	found := directive.ConcreteTypes(wanted, files, paths)
	added := false
	for path, types := range found {
		for _, t := range types {
			for _, path := range append(slices.Collect(maps.Keys(t.Files)), path) {
				if parsed[path] != nil {
					continue
				}
				content, err := os.ReadFile(path)
				if err != nil {
					continue
				}
				if file := p.parseFile(d, path, content); file != nil {
					s.contents[path], parsed[path], added = content, file, true
				}
			}
		}
	}
	if added {
		for i, path := range paths {
			if parsed[path] != nil {
				files[i] = parsed[path]
			}
		}
		found = directive.ConcreteTypes(wanted, files, paths)
	}
	return found
}

// overlay decides how the type checker sees a file with directives and the file
// that is generated for it.
func (p *Program) overlay(d *dir, src *directive.File, s *scan) {
	content := s.contents[src.Path]
	out := naming.OutputFile(src.Path)
	seen := stub{content: content, ast: src.Syntax}
	if len(src.Decls) > 0 && d.place == nil {
		usesRuntime := slices.ContainsFunc(s.importers, func(i runtimeImporter) bool {
			return i.pkg == src.Syntax.Name.Name && (!i.test || strings.HasSuffix(src.Path, "_test.go"))
		})
		if err := output.MayReplace(out, "", nil); err != nil {
			p.report.At(src.Syntax.Name.Pos(), "%s %v", p.report.Short(out), err)
		}
		d.overlay[out] = emptyStub(src, content)
		var err error
		if seen, err = withStubs(p.fset, src, content, usesRuntime); err != nil {
			p.report.At(src.Syntax.Package, "the wrappers cannot be declared: %v; this is a bug of rategen", err)
		}
	} else if len(src.Methods) > 0 {
		d.overlay[out] = emptyStub(src, content) // for what it imports
	}
	if slices.Contains(d.sources, src) {
		d.overlay[src.Path] = seen
	}
}
