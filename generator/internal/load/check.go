package load

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/parallel"
	"golang.org/x/tools/go/packages"
)

// A File is a source file that has types to wrap, parsed and type-checked.
type File struct {
	Source  *directive.File
	Pkg     *packages.Package
	Syntax  *ast.File // as type-checked: of Source, or what cgo made of it
	Content []byte    // of the source file
	Place   *Place    // that its wrappers go to; nil: next to it
	// Names are those of its package in every build.
	Names *Names
	// Policies are the files of the package that declare some.
	Policies []*directive.File
}

// Check type-checks the packages that have directives, without function bodies,
// and returns their files with types to wrap, in the order of packages and
// paths. Packages without directives are never type-checked. Errors that do not
// reach what is to be generated are left to the compiler.
func (p *Program) Check() []*File {
	annotated := annotatedDirs(p.dirs)
	if len(annotated) == 0 {
		return nil
	}
	pkgs, err := p.typeCheck(annotated)
	if err != nil {
		p.report.AtPosition(token.Position{}, "%s", strings.TrimSpace(err.Error()))
		return nil
	}
	p.pkgs = pkgs
	files := make([][]*File, len(annotated))
	parallel.Do(len(annotated), func(i int) {
		p.report.Guard(annotated[i].sources[0].Syntax.Package, func() { files[i] = p.filesOf(annotated[i], pkgs) })
	})
	return slices.Concat(files...)
}

// annotatedDirs returns the packages that have directives and can be parsed.
func annotatedDirs(dirs []*dir) []*dir {
	return slices.DeleteFunc(slices.Clone(dirs), func(d *dir) bool { return d.broken || len(d.sources) == 0 })
}

// filesOf returns the files of a package that have types to wrap. It reports
// those that cannot be worked on.
func (p *Program) filesOf(d *dir, pkgs []*packages.Package) []*File {
	errs := loadErrors{Program: p, dir: d}
	var files []*File
	names := map[string]*Names{}
	for _, src := range d.sources {
		if len(src.Decls) == 0 {
			continue // its directives belong to a type of another file
		}
		pkg, syntax := findFile(p.fset, pkgs, src)
		if pkg == nil {
			if !errs.reportDirectory(pkgs) {
				p.report.At(src.Syntax.Package, "this file is not part of package %s as the go command sees it", d.path)
			}
			continue
		}
		if errs.reportPackage(pkg) {
			continue
		}
		name := syntax.Name.Name
		if names[name] == nil {
			names[name] = NamesOf(d.filesOf(name))
		}
		files = append(files, &File{Source: src, Pkg: pkg, Syntax: syntax, Content: d.overlay[src.Path].content, Place: d.place, Names: names[name], Policies: d.policies})
	}
	return files
}

// Sibling returns another file of the same package as it was type-checked.
func (f *File) Sibling(src *directive.File) *File {
	_, syntax := findFile(f.Pkg.Fset, []*packages.Package{f.Pkg}, src)
	return &File{Source: src, Pkg: f.Pkg, Syntax: syntax}
}

// findFile returns the package that a source file was type-checked in, and the
// file as it was. A file that imports "C" is checked as cgo has rewritten it,
// with line directives that name the source.
func findFile(fset *token.FileSet, pkgs []*packages.Package, src *directive.File) (*packages.Package, *ast.File) {
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			if f == src.Syntax || fset.Position(f.Package).Filename == src.Path {
				return p, f
			}
		}
	}
	return nil, nil
}

// typeCheck checks the annotated packages. Code that names a wrapper compiles
// whether or not it is written yet.
func (p *Program) typeCheck(annotated []*dir) ([]*packages.Package, error) {
	paths := map[string]bool{}
	for _, d := range annotated {
		d.read(p.fset)
		d.findTaken(p.fset, p.report.At)
		importsOf(d.plain, paths)
		importsOf(d.inside, paths)
		importsOf(d.outside, paths)
		d.directiveImports(paths)
	}
	p.list.addMissing(paths)
	if slices.ContainsFunc(annotated, func(d *dir) bool { return p.list.needsCgo(d.path) }) {
		return p.typeCheckCgo(annotated)
	}
	pkgs := checkIn(newPackageSet(p.fset, p.list, annotated), annotated)
	if slices.ContainsFunc(pkgs, missesName) {
		// Perhaps they name wrappers of packages that are not in this run, and
		// not generated yet.
		if others := p.annotatedImports(); len(others) > 0 {
			pkgs = checkIn(newPackageSet(p.fset, p.list, slices.Concat(annotated, others)), annotated)
		}
	}
	return pkgs, nil
}

// missesName reports whether a package names what another one does not declare.
func missesName(p *packages.Package) bool {
	return slices.ContainsFunc(p.Errors, func(e packages.Error) bool {
		name, ok := strings.CutPrefix(e.Msg, "undefined: ")
		return ok && strings.Contains(name, ".")
	})
}

func checkIn(s *packageSet, annotated []*dir) []*packages.Package {
	var pkgs []*packages.Package
	for _, d := range annotated {
		pkgs = append(pkgs, d.typeCheck(s, plainPackage))
		if d.hasTests() {
			s := s.withTests(d)
			pkgs = append(pkgs, d.typeCheck(s, plainPackage), d.typeCheck(s, externalTest))
		}
	}
	return pkgs
}

// outside returns a program for packages that are not in this run. What is wrong with them is reported
// when they are generated for.
func (p *Program) outside() *Program {
	cfg := p.cfg
	cfg.Out = "" // the flags are for the packages of this run
	return &Program{cfg: cfg, fset: p.fset, list: p.list, report: diag.NewReporter(p.fset, p.cfg.Dir)}
}

// annotatedImports returns the packages with directives that are not in this
// run and that packages in it import.
func (p *Program) annotatedImports() []*dir {
	others := p.outside()
	for _, l := range p.list.pkgs {
		if l.Standard || l.Dir == "" || l.isDownloaded() || slices.ContainsFunc(p.dirs, func(d *dir) bool { return d.path == l.ImportPath }) {
			continue
		}
		others.dirs = append(others.dirs, newPackageDir(l))
	}
	slices.SortFunc(others.dirs, func(a, b *dir) int { return strings.Compare(a.path, b.path) })
	others.Parse()
	found := annotatedDirs(others.dirs)
	for _, d := range found {
		d.read(p.fset)
	}
	return found
}
