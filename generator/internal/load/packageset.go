package load

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// A packageSet is a set of packages that agree on every type. A package with
// directives is checked from source, with stubs. Another one comes from its
// export data if the build cache has it, this program can read it, and nothing that
// it imports is checked from source, else from its source without function bodies.
//
// A package with its test files is another package of the same path, and so is
// every package between it and its external test. These make a packageSet of
// their own, which shares all other packages with its parent.
type packageSet struct {
	fset   *token.FileSet
	list   *goList
	dirs   map[string]*dir // the annotated packages, by path
	parent *packageSet
	tested string // the package that has its test files here

	reader  *reader
	exports types.Importer // of export data
	loaded  map[string]*loading
	checked map[string]*packages.Package // the annotated ones
	source  map[string]bool              // whether a package is checked from source
	sizes   types.Sizes
}

type loading struct {
	pkg *types.Package
	err error
}

func newPackageSet(fset *token.FileSet, list *goList, dirs []*dir) *packageSet {
	s := &packageSet{
		fset: fset, list: list, dirs: map[string]*dir{},
		exports: importer.ForCompiler(fset, "gc", list.openExport), loaded: map[string]*loading{}, checked: map[string]*packages.Package{}, source: map[string]bool{},
		sizes: types.SizesFor("gc", list.arch()),
	}
	for _, d := range dirs {
		s.dirs[d.path] = d
	}
	s.reader = newReader(fset, list, func(path string) bool {
		return path == "unsafe" || path == "C" || s.dirs[path] != nil || !s.fromSource(path)
	})
	s.prepare()
	return s
}

// withTests returns the packageSet in which a package has its test files.
func (s *packageSet) withTests(d *dir) *packageSet {
	return &packageSet{
		fset: s.fset, list: s.list, dirs: s.dirs, parent: s, tested: d.path,
		reader: s.reader, exports: s.exports, loaded: map[string]*loading{}, checked: map[string]*packages.Package{}, source: s.source, sizes: s.sizes,
	}
}

// prepare decides for every package whether it is checked from source, so that
// the reader can ask at any time.
func (s *packageSet) prepare() {
	readable := s.readsExports()
	var decide func(path string) bool
	decide = func(path string) bool {
		if source, known := s.source[path]; known {
			return source
		}
		p := s.list.pkgs[path]
		if p == nil {
			return false
		}
		s.source[path] = false // an import cycle is an error elsewhere
		source := p.Export == "" || s.dirs[path] != nil || !readable
		for _, i := range p.Imports {
			source = decide(i) || source
		}
		s.source[path] = source && path != "unsafe" && path != "C"
		return s.source[path]
	}
	for path := range s.list.pkgs {
		decide(path)
	}
}

// readsExports reports whether export data is of a kind that this program knows. What a
// newer Go compiles than the one that has built this program may be unknown to it.
func (s *packageSet) readsExports() (ok bool) {
	// Every program has this package, and it is small.
	if p := s.list.pkgs["internal/goarch"]; p == nil || p.Export == "" {
		return true
	}
	defer func() {
		if recover() != nil { // how package importer tells of a version that it does not know
			ok = false
		}
	}()
	_, err := s.exports.Import("internal/goarch")
	return err == nil
}

func (s *packageSet) fromSource(path string) bool { return s.source[path] }

// isTested reports whether a package is, or imports by any way, the one that has its test files here.
func (s *packageSet) isTested(path string) bool {
	return s.list.reaches(path, func(p *listed) bool { return p.ImportPath == s.tested })
}

// load returns the types of a package.
func (s *packageSet) load(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if s.parent != nil && !s.isTested(path) {
		return s.parent.load(path)
	}
	in := s.loaded[path]
	if in == nil {
		in = &loading{err: fmt.Errorf("import cycle not allowed")}
		s.loaded[path] = in
		in.pkg, in.err = s.read(path)
	}
	return in.pkg, in.err
}

func (s *packageSet) read(path string) (*types.Package, error) {
	p := s.list.pkgs[path]
	if p == nil {
		return nil, fmt.Errorf("the go command does not find it")
	}
	if s.dirs[path] != nil {
		d := s.dirs[path]
		return d.typeCheck(s, plainPackage).Types, nil
	}
	if p.Error != nil && len(p.GoFiles)+len(p.CgoFiles) == 0 {
		return nil, fmt.Errorf("%s", p.Error.Err)
	}
	if !s.fromSource(path) {
		return s.exports.Import(path)
	}
	return s.readSource(p)
}

func (s *packageSet) readSource(p *listed) (*types.Package, error) {
	config := s.config(p, func(types.Error) {}) // what is missed shows where it is used
	config.FakeImportC = true
	pkg, _ := config.Check(p.ImportPath, s.fset, s.reader.take(p.ImportPath).files, nil)
	return pkg, nil
}

// config returns how the files of a package are checked.
func (s *packageSet) config(p *listed, report func(types.Error)) *types.Config {
	version := ""
	if p.Module != nil && p.Module.GoVersion != "" {
		version = "go" + p.Module.GoVersion
	}
	return &types.Config{
		GoVersion:        version,
		IgnoreFuncBodies: true,
		Sizes:            s.sizes,
		Importer:         importerFrom{s, p},
		Error: func(err error) {
			if err, ok := err.(types.Error); ok {
				report(err)
			}
		},
	}
}

// An importerFrom imports for the files of one package.
type importerFrom struct {
	*packageSet
	from *listed
}

// Import implements types.Importer.
func (i importerFrom) Import(path string) (*types.Package, error) {
	if mapped := i.from.ImportMap[path]; mapped != "" {
		path = mapped
	}
	return i.load(path)
}

// importsOf adds the paths that files import.
func importsOf(files []*ast.File, paths map[string]bool) {
	for _, f := range files {
		for _, s := range f.Imports {
			if path := (&listed{}).resolve(s); path != "" {
				paths[path] = true
			}
		}
	}
}

// directiveImports adds the paths that the directives of a package import.
func (d *dir) directiveImports(paths map[string]bool) {
	for _, src := range d.sources {
		for _, i := range src.Imports {
			paths[i.Path] = true
		}
	}
}
