package load

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// A universe is a set of packages whose types belong together. Each annotated
// package is checked from source, with stubs; each other one comes from its
// export data if the build cache has it and it imports nothing that is checked
// from source, and else from its source without function bodies. So no two
// packages have different ideas of one type.
//
// The test files of a package make another package of the same path, and with
// it of everything between that and the external test: each such package gets
// a universe of its own, which shares with its parent what does not depend on
// the package.
type universe struct {
	fset   *token.FileSet
	list   *goList
	dirs   map[string]*dir // the annotated packages, by path
	parent *universe
	tested string // the package that has its test files here

	reader  *reader
	exports map[string]*types.Package // filled by gcexportdata
	loaded  map[string]*loading
	checked map[string]*packages.Package // the annotated ones
	source  map[string]bool              // whether a package is checked from source
	sizes   types.Sizes
}

type loading struct {
	pkg *types.Package
	err error
}

func newUniverse(fset *token.FileSet, list *goList, dirs []*dir) *universe {
	u := &universe{
		fset: fset, list: list, dirs: map[string]*dir{},
		exports: map[string]*types.Package{}, loaded: map[string]*loading{}, checked: map[string]*packages.Package{}, source: map[string]bool{},
		sizes: types.SizesFor("gc", list.arch()),
	}
	for _, d := range dirs {
		u.dirs[d.path] = d
	}
	u.reader = newReader(fset, list, func(path string) bool {
		return path == "unsafe" || path == "C" || u.dirs[path] != nil || !u.fromSource(path)
	})
	u.prepare()
	return u
}

// withTests returns the universe in which a package has its test files.
func (u *universe) withTests(d *dir) *universe {
	return &universe{
		fset: u.fset, list: u.list, dirs: u.dirs, parent: u, tested: d.path,
		reader: u.reader, exports: u.exports, loaded: map[string]*loading{}, checked: map[string]*packages.Package{}, source: u.source, sizes: u.sizes,
	}
}

// prepare decides for every package whether it is checked from source, so that
// the reader can ask at any time.
func (u *universe) prepare() {
	var decide func(path string) bool
	decide = func(path string) bool {
		if source, known := u.source[path]; known {
			return source
		}
		p := u.list.pkgs[path]
		if p == nil {
			return false
		}
		u.source[path] = false // an import cycle is an error elsewhere
		source := p.Export == "" || u.dirs[path] != nil
		for _, i := range p.Imports {
			source = decide(i) || source
		}
		u.source[path] = source && path != "unsafe" && path != "C"
		return u.source[path]
	}
	for path := range u.list.pkgs {
		decide(path)
	}
}

func (u *universe) fromSource(path string) bool { return u.source[path] }

// dependsOn reports whether a package is, or imports by any way, another one.
func (u *universe) dependsOn(path, on string, seen map[string]bool) bool {
	if path == on {
		return true
	}
	p := u.list.pkgs[path]
	if p == nil || p.Standard || seen[path] {
		return false
	}
	seen[path] = true
	return slices.ContainsFunc(p.Imports, func(i string) bool { return u.dependsOn(i, on, seen) })
}

// load returns the types of a package.
func (u *universe) load(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if u.parent != nil && !u.dependsOn(path, u.tested, map[string]bool{}) {
		return u.parent.load(path)
	}
	in := u.loaded[path]
	if in == nil {
		in = &loading{err: fmt.Errorf("import cycle not allowed")}
		u.loaded[path] = in
		in.pkg, in.err = u.read(path)
	}
	return in.pkg, in.err
}

func (u *universe) read(path string) (*types.Package, error) {
	p := u.list.pkgs[path]
	switch {
	case p == nil:
		return nil, fmt.Errorf("the go command does not find it")
	case u.dirs[path] != nil:
		d := u.dirs[path]
		return d.typeCheck(u, plainPackage).Types, nil
	case p.Error != nil && len(p.GoFiles)+len(p.CgoFiles) == 0:
		return nil, fmt.Errorf("%s", p.Error.Err)
	case !u.fromSource(path):
		if pkg, err := u.readExport(p); err == nil {
			return pkg, nil
		}
	}
	return u.readSource(p)
}

func (u *universe) readExport(p *listed) (*types.Package, error) {
	if pkg := u.exports[p.ImportPath]; pkg != nil && pkg.Complete() {
		return pkg, nil
	}
	file, err := os.Open(p.Export)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	//lint:ignore SA1019 up to Go 1.27 the go command gives archives, which Read does not take
	data, err := gcexportdata.NewReader(file)
	if err != nil {
		return nil, err
	}
	return gcexportdata.Read(data, u.fset, u.exports, p.ImportPath)
}

func (u *universe) readSource(p *listed) (*types.Package, error) {
	config := u.config(p, func(types.Error) {}) // what is missed shows where it is used
	config.FakeImportC = true
	pkg, _ := config.Check(p.ImportPath, u.fset, u.reader.get(p.ImportPath).files, nil)
	return pkg, nil
}

// config returns how the files of a package are checked.
func (u *universe) config(p *listed, report func(types.Error)) *types.Config {
	version := ""
	if p.Module != nil && p.Module.GoVersion != "" {
		version = "go" + p.Module.GoVersion
	}
	return &types.Config{
		GoVersion:        version,
		IgnoreFuncBodies: true,
		Sizes:            u.sizes,
		Importer:         importerFrom{u, p},
		Error: func(err error) {
			if err, ok := err.(types.Error); ok {
				report(err)
			}
		},
	}
}

// An importerFrom imports for the files of one package.
type importerFrom struct {
	*universe
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
