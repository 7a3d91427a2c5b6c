package load

import (
	"go/ast"

	"github.com/rategen/rategen/generator/internal/directive"
	"golang.org/x/tools/go/packages"
)

// linkPolicies gives policies of other packages to the directives that use them.
// These packages need not be among those of the run.
func (p *Program) linkPolicies() {
	others := p.outside()
	found := map[string]*dir{}
	for _, d := range p.dirs {
		found[d.path] = d
	}
	for _, d := range p.dirs {
		for _, src := range d.sources {
			for name, uses := range src.Foreign() {
				path := p.importNamed(d, src, name)
				l := p.list.pkgs[path]
				if l == nil || l.Dir == "" {
					for _, s := range uses {
						p.report.At(s.Place("use"), "use: the file imports no package %s: import it, or write %simport \"path\"", name, directive.Prefix).Mark(name)
					}
					continue
				}
				if found[path] == nil {
					found[path] = newPackageDir(l)
					one := *others
					one.dirs = []*dir{found[path]}
					one.Parse()
					others.dirs = append(others.dirs, found[path])
				}
				var policies []*directive.Policy
				for _, file := range found[path].policies {
					policies = append(policies, file.Policies...)
				}
				directive.LinkForeign(uses, policies, p.report.At)
			}
		}
	}
	p.foreign = others.dirs
}

// importNamed returns the path of the package that a name means in a file, by what
// its code or its directives import, or "".
func (p *Program) importNamed(d *dir, src *directive.File, name string) string {
	paths := map[string]bool{}
	for _, i := range src.Imports {
		paths[i.Path] = true
	}
	p.list.addMissing(paths)
	is := func(given, path string) bool {
		if given != "" {
			return given == name
		}
		return p.list.pkgs[path] != nil && p.list.pkgs[path].Name == name
	}
	for _, i := range src.Imports {
		if is(i.Name, i.Path) {
			return i.Path
		}
	}
	from := p.list.pkgs[d.path]
	if from == nil {
		from = &listed{}
	}
	for _, i := range src.Syntax.Imports {
		if path := from.resolve(i); is(nameOf(i), path) {
			return path
		}
	}
	return ""
}

func nameOf(i *ast.ImportSpec) string {
	if i.Name == nil {
		return ""
	}
	return i.Name.Name
}

// PolicyPackages returns the packages of all files with policies, type-checked.
func (p *Program) PolicyPackages() map[*directive.File]*packages.Package {
	found := map[*directive.File]*packages.Package{}
	for _, d := range p.dirs {
		for _, src := range d.policies {
			if pkg, _ := findFile(p.fset, p.pkgs, src); pkg != nil {
				found[src] = pkg
			}
		}
	}
	paths := map[string]bool{}
	for _, d := range p.foreign {
		d.read(p.fset)
		importsOf(d.plain, paths)
		d.directiveImports(paths)
	}
	if len(p.foreign) == 0 {
		return found
	}
	p.list.addMissing(paths)
	// Their types need not be those of the run: constants are all that is taken from
	// them.
	set := newPackageSet(p.fset, p.list, p.foreign)
	for _, d := range p.foreign {
		pkg := d.typeCheck(set, plainPackage)
		for _, src := range d.policies {
			found[src] = pkg
		}
	}
	return found
}

// Policies returns the files with policies of the packages, in their order.
func (p *Program) Policies() []*directive.File {
	return ofAll(p.dirs, func(d *dir) []*directive.File { return d.policies })
}
