package load

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/parallel"
)

// A reduced package is the source of a dependency without function bodies and
// comments, which its types do not depend on, and without the imports that only
// these need. Dependencies that have no export data in the build cache are read
// in this form.
type reduced struct {
	files   []*ast.File
	imports []string // as resolved by the go command
}

// A reader parses dependencies, some of them in the background before they are
// asked for. It keeps none that was taken: all the syntax of a large program at
// once would need more memory than its types.
type reader struct {
	fset  *token.FileSet
	list  *goList
	stops func(path string) bool // is not to be read from source

	mu    sync.Mutex
	begun map[string]*reading // and not taken
	taken map[string]bool     // before: not read ahead again
	slots chan struct{}       // bounds the files parsed at a time
}

// readAhead is how many packages are read, or being read, and not taken yet. It
// keeps the processors busy while one of them checks types.
const readAhead = 16

type reading struct {
	done chan struct{}
	reduced
	failed *diag.Panic // in place of reduced
}

func newReader(fset *token.FileSet, list *goList, stops func(string) bool) *reader {
	return &reader{fset: fset, list: list, stops: stops, begun: map[string]*reading{}, taken: map[string]bool{}, slots: make(chan struct{}, goruntime.GOMAXPROCS(0))}
}

// start begins to read a package, if it is wanted now or there is room.
func (r *reader) start(path string, now bool) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.begun[path]
	if in != nil || !now && (r.taken[path] || len(r.begun) >= readAhead) {
		return in
	}
	in = &reading{done: make(chan struct{})}
	r.begun[path] = in
	go func() {
		defer close(in.done)
		defer func() {
			if v := recover(); v != nil {
				in.failed = diag.AsPanic(v)
			}
		}()
		in.reduced = r.read(r.list.pkgs[path])
		r.prefetch(in.imports)
	}()
	return in
}

// prefetch begins to read what a package imports.
func (r *reader) prefetch(imports []string) {
	for _, path := range imports {
		if r.list.pkgs[path] != nil && !r.stops(path) {
			r.start(path, false)
		}
	}
}

// take returns a package when it is read. The next one who takes it has it read
// again.
func (r *reader) take(path string) reduced {
	in := r.start(path, true)
	<-in.done
	if in.failed != nil {
		panic(in.failed)
	}
	r.mu.Lock()
	delete(r.begun, path)
	r.taken[path] = true
	r.mu.Unlock()
	r.prefetch(in.imports)
	return in.reduced
}

func (r *reader) read(p *listed) reduced {
	names := slices.Concat(p.GoFiles, p.CgoFiles)
	files := make([]*ast.File, len(names))
	imports := make([][]string, len(names))
	parallel.Do(len(names), func(i int) {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
		// An error leaves a part of the file, which may be all we need.
		f, _ := parser.ParseFile(r.fset, filepath.Join(p.Dir, names[i]), nil, parser.SkipObjectResolution)
		if f != nil {
			files[i], imports[i] = f, r.reduce(f, p)
		}
	})
	found := slices.Concat(imports...)
	slices.Sort(found)
	return reduced{
		files:   slices.DeleteFunc(files, func(f *ast.File) bool { return f == nil }),
		imports: slices.Compact(found),
	}
}

// reduce removes what other packages do not see from a file and returns what
// it still imports.
func (r *reader) reduce(f *ast.File, p *listed) []string {
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			fn.Body = nil
		}
	}
	used := qualifiers(f)
	var imports []string
	f.Decls = slices.DeleteFunc(f.Decls, func(decl ast.Decl) bool {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.IMPORT {
			return false
		}
		gen.Specs = slices.DeleteFunc(gen.Specs, func(s ast.Spec) bool {
			path := p.resolve(s.(*ast.ImportSpec))
			if path == "" || !used[r.nameOf(s.(*ast.ImportSpec), path)] {
				return true
			}
			imports = append(imports, path)
			return false
		})
		return len(gen.Specs) == 0
	})
	return imports
}

// resolve returns the path of the package that an import names, or "".
func (l *listed) resolve(s *ast.ImportSpec) string {
	path, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return ""
	}
	if mapped := l.ImportMap[path]; mapped != "" {
		return mapped
	}
	return path
}

// nameOf returns the name that an import declares.
func (r *reader) nameOf(s *ast.ImportSpec, path string) string {
	if s.Name != nil {
		return s.Name.Name
	}
	if p := r.list.pkgs[path]; p != nil {
		return p.Name
	}
	return path // "unsafe", "C"
}

// qualifiers returns the identifiers before the dots of a file, and ".", which
// the name of a dot import is.
func qualifiers(f *ast.File) map[string]bool {
	names := map[string]bool{".": true}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}
