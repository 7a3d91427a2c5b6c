package generator

import (
	"cmp"
	"go/ast"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"golang.org/x/tools/go/packages"
)

// areFree reports names of types and of files that are to be generated and that the
// package has already. Generated files are not among its files.
func areFree(sources []*directive.File, files []*ast.File, paths []string, report *diag.Reporter) bool {
	declared := map[string]bool{}
	for _, file := range files {
		for _, id := range output.DeclaredNames(file) {
			declared[id.Name] = true
		}
	}
	free := true
	for _, src := range sources {
		if out := naming.OutputFile(src.Path); len(src.Decls) > 0 && slices.Contains(paths, out) {
			if err := output.MayReplace(out, "", nil); err != nil {
				report.At(src.Syntax.Name.Pos(), "%s %v", report.Short(out), err)
				free = false
			}
		}
		for _, decl := range src.Decls {
			free = decl.Claim(declared, report.At) && free
		}
	}
	return free
}

// hasImports reports whether the package imports all that the directives of a file
// do.
func hasImports(pkg *packages.Package, src *directive.File) bool {
	return !slices.ContainsFunc(src.Imports, func(i *directive.Import) bool { return pkg.Imports[i.Path] == nil })
}

// importsOf asks the go command for a package, and for all that it imports: the name of
// the package, which is "" if there is none, and the imports of each.
func importsOf(path, dir string) (name string, imports map[string][]string, err error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-f", `{{.ImportPath}} {{.Name}} {{join .Imports " "}}`, "--", path)
	cmd.Dir = dir
	out, err := cmd.Output()
	imports = map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if words[0] == path {
			name = words[1]
		}
		imports[words[0]] = words[2:]
	}
	return name, imports, err
}

// checkImports reports imports of directives that cannot be had, have a name that is
// taken, or import the package themselves. The go command is asked about those that
// nothing else in the package imports. What is declared there is not known, so the
// expressions of the file are left to rategen.
func checkImports(f *load.File, report *diag.Reporter) {
	known := *f.Pkg
	known.Imports = map[string]*packages.Package{}
	own := f.Pkg.Types.Path()
	for _, i := range f.Source.Imports {
		if p := f.Pkg.Imports[i.Path]; p != nil {
			known.Imports[i.Path] = p
			continue
		}
		name, imports, err := importsOf(i.Path, filepath.Dir(f.Source.Path))
		if err != nil {
			return // there is nobody to ask
		}
		if way := load.ImportWay(func(path string) []string { return imports[path] }, i.Path, own); way != "" && f.Source.Evaluates(cmp.Or(i.Name, name)) {
			model.ReportCircle(report, i, own, way)
		}
		if name != "" && name != "main" && gotypes.MayImport(own, i.Path) {
			known.Imports[i.Path] = &packages.Package{PkgPath: i.Path, Types: types.NewPackage(i.Path, name)}
		}
	}
	expr.NewScope(&load.File{Source: f.Source, Pkg: &known, Syntax: f.Syntax}, f.Pkg.Types, report)
}
